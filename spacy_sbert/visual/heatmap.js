// Shows both texts of a cell. A function of the figure and its data; texts reach the page as textContent alone.
(figure, data) => {
  const columns = data.columns || data.rows;
  const panel = figure.querySelector(".pair"), body = figure.querySelector("tbody");
  const heads = figure.querySelectorAll("thead th"), ofTokens = figure.querySelector(".matrix.tokens");
  let marked = [];

  const add = (parent, tag, text) => {
    const element = document.createElement(tag);
    element.textContent = text;
    parent.append(element);
    return element;
  };
  // number: before the text. other: the row or column whose similarities colour it. pointed: the token pointed at.
  const write = (number, text, other, pointed) => {
    const line = document.createElement("p");
    line.dir = "auto";
    if (number) add(line, "b", number);
    text.tokens.forEach((token, place) => {
      const found = text.cosines && text.cosines[place], word = token.trimEnd();
      if (found) {
        const span = add(line, "span", word);
        span.className = "v" + data.steps[found[other] + 100] + (place === pointed ? " here" : "");
        span.title = (found[other] / 100).toFixed(2);
      } else line.append(word);
      line.append(token.slice(word.length));
    });
    panel.append(line);
  };
  const show = (cell) => {
    const row = cell.parentNode.cells[0], column = heads[cell.cellIndex - 1];
    const i = +row.dataset.place, j = +column.dataset.place;
    marked.forEach((element) => element.classList.remove("here"));
    marked = [cell, row, column];
    marked.forEach((element) => element.classList.add("here"));
    panel.replaceChildren();
    add(panel, "strong", cell.dataset.cosine);
    if (ofTokens) {
      add(panel, "small", " tokens by their similarity to the framed one of the other text");
      write("", data.rows[0], cell.cellIndex - 1, i);
      write("", columns[0], cell.parentNode.rowIndex - 1, j);
    } else {
      const coloured = data.rows[i].cosines || columns[j].cosines;
      add(panel, "small", coloured ? ` tokens by their similarity to the other text, from ${data.range}` : "");
      write(i + 1, data.rows[i], j);
      write(j + 1, columns[j], i);
    }
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
}
