// Shows the text of a point. A function of the figure and its data; texts reach the page as textContent alone.
(figure, data) => {
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
}
