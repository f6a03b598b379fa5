"""Tables of several sizes and normalizations, of results made by hand."""

from helpers.made_results import classified, results
from protocols.variant_tables import variant_tables


def test_tuned_variants():
    task = classified(0.5)
    more = {"pca-2": 0.6, "pca-4": 0.7, "up-8": 0.75}
    for size, value in more.items():
        task["variants"].append(
            {"normalization": "none", "size": size, "scores": {"lr": {"accuracy": value}}}
        )
    task["variants"][-1]["deviation"] = {"lr": {"accuracy": 0.02}}
    task["tuned"] = {
        "normalization": ["unit", "none", "unit"],
        "scores": {"lr": {"accuracy": 0.55}},
    }
    (table,) = variant_tables(results({"MR": task, "CR": classified(0.4)}, sizes=["own", *more]))
    assert table.title == "Variants of the input: transfer"
    assert table.columns == ("Normalisation", "Size", "MR")
    rows = [[cell.text for cell in row] for row in table.cells]
    assert rows[:2] == [["none", "own", "50.00"], ["none", "pca-2", "60.00"]]
    assert rows[3:] == [["none", "up-8", "75.00 ± 2.00"], ["tuned in each fold", "own", "55.00"]]
    assert "tuned in each fold for MR: none 1, unit 2." in table.caption
    assert "the variant 'none, own'" in table.caption
