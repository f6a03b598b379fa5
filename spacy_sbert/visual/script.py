"""What pictures do when they are pointed at.

A script is a function of its figure and the data beside it. Texts reach the page as textContent alone, never as markup.
"""

HEATMAP = """(figure, data) => {
  const columns = data.columns || data.rows;
  const panel = figure.querySelector(".pair"), body = figure.querySelector("tbody");
  const heads = figure.querySelectorAll("thead th");
  let marked = [];

  const add = (parent, tag, text) => {
    const element = document.createElement(tag);
    element.textContent = text;
    parent.append(element);
    return element;
  };
  const write = (number, text, other) => {
    const line = document.createElement("p");
    line.dir = "auto";
    add(line, "b", number);
    text.tokens.forEach((token, place) => {
      const found = text.cosines && text.cosines[place], word = token.trimEnd();
      if (found) {
        const span = add(line, "span", word);
        span.className = "v" + data.steps[found[other] + 100];
        span.title = (found[other] / 100).toFixed(2);
      } else line.append(word);
      line.append(token.slice(word.length));
    });
    panel.append(line);
  };
  const show = (cell) => {
    const i = cell.parentNode.rowIndex - 1, j = cell.cellIndex - 1;
    marked.forEach((element) => element.classList.remove("here"));
    marked = [cell, cell.parentNode.cells[0], heads[j]];
    marked.forEach((element) => element.classList.add("here"));
    panel.replaceChildren();
    add(panel, "strong", cell.dataset.cosine);
    const coloured = data.rows[i].cosines || columns[j].cosines;
    add(panel, "small", coloured ? " tokens by their similarity to the other text" : "");
    write(i + 1, data.rows[i], j);
    write(j + 1, columns[j], i);
    panel.style.minHeight = panel.offsetHeight + "px";
  };
  const MOVES = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };

  body.addEventListener("pointerover", (event) => {
    const cell = event.target.closest("td");
    if (cell) show(cell);
  });
  body.addEventListener("focusin", (event) => {
    if (event.target.matches("td")) show(event.target);
  });
  body.addEventListener("keydown", (event) => {
    const move = MOVES[event.key], cell = event.target.closest("td");
    if (!move || !cell) return;
    event.preventDefault();
    event.stopPropagation();
    const row = body.rows[cell.parentNode.rowIndex - 1 + move[0]];
    const next = row && row.querySelectorAll("td")[cell.cellIndex - 1 + move[1]];
    if (!next) return;
    cell.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  });
}"""

MAP = """(figure, data) => {
  const plot = figure.querySelector(".plot"), drawing = plot.querySelector("svg");
  const ring = plot.querySelector(".ring"), tip = plot.querySelector(".tip");
  const buttons = [...figure.querySelectorAll(".labels button")], paths = [...drawing.querySelectorAll(".points")];
  const REACH = 14, GAP = 12;
  let current = -1, only = -1;

  const hide = () => {
    current = -1;
    tip.hidden = true;
    ring.setAttribute("visibility", "hidden");
  };
  const show = (place) => {
    current = place;
    const [x, y] = data.places[place], size = drawing.getBoundingClientRect();
    const scale = size.width / drawing.viewBox.baseVal.width;
    ring.setAttribute("cx", x);
    ring.setAttribute("cy", y);
    ring.setAttribute("visibility", "visible");
    tip.replaceChildren();
    if (data.names.length) {
      const name = document.createElement("b");
      name.textContent = data.names[data.group[place]];
      tip.append(name);
    }
    const text = document.createElement("span");
    text.dir = "auto";
    text.textContent = data.texts[place];
    tip.append(text);
    tip.hidden = false;
    tip.style.left = tip.style.top = "0";
    const left = Math.min(x * scale - tip.offsetWidth / 2, size.width - tip.offsetWidth);
    const below = y * scale + GAP, above = y * scale - GAP - tip.offsetHeight;
    const fits = below + tip.offsetHeight <= size.height || above < 0;
    tip.style.left = Math.max(0, left) + "px";
    tip.style.top = (fits ? below : above) + "px";
  };
  const nearest = (event) => {
    const size = drawing.getBoundingClientRect(), scale = size.width / drawing.viewBox.baseVal.width;
    const x = (event.clientX - size.left) / scale, y = (event.clientY - size.top) / scale;
    let best = -1, least = (REACH / Math.min(1, scale)) ** 2;
    data.places.forEach(([a, b], place) => {
      const far = (a - x) ** 2 + (b - y) ** 2;
      if (far <= least && (only < 0 || data.group[place] === only)) [best, least] = [place, far];
    });
    return best;
  };
  const point = (event) => {
    const place = nearest(event);
    if (place < 0) hide();
    else if (place !== current) show(place);
  };

  drawing.addEventListener("pointermove", point);
  drawing.addEventListener("pointerdown", point);
  drawing.addEventListener("pointerleave", hide);
  plot.addEventListener("blur", hide);
  plot.addEventListener("keydown", (event) => {
    const move = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 }[event.key];
    if (event.key === "Escape") hide();
    if (!move) return;
    event.preventDefault();
    event.stopPropagation();
    const shown = data.places.map((_, place) => place).filter((place) => only < 0 || data.group[place] === only);
    const start = shown.indexOf(current);
    show(shown[start < 0 ? 0 : (start + move + shown.length) % shown.length]);
  });
  buttons.forEach((button, place) => button.addEventListener("click", () => {
    only = only === place ? -1 : place;
    buttons.forEach((one, other) => one.setAttribute("aria-pressed", String(other === only)));
    paths.forEach((one, other) => one.classList.toggle("faint", only >= 0 && other !== only));
    hide();
  }));
}"""


def run(script: str, name: str) -> str:
    """The call of a script for the figure of this id."""
    return (
        f'{{ const figure = document.getElementById("{name}");\n'
        f"const data = JSON.parse(figure.querySelector('script[type=\"application/json\"]').textContent);\n"
        f"({script})(figure, data); }}"
    )
