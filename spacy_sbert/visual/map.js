// Shows the text of a point. A function of the figure, its data and zoom.js; texts reach the page as textContent alone.
(figure, data, zoom) => {
  const plot = figure.querySelector(".plot"), drawing = plot.querySelector("svg");
  const ring = plot.querySelector(".ring"), tip = plot.querySelector(".tip");
  const buttons = [...figure.querySelectorAll(".labels button")], paths = [...drawing.querySelectorAll(".points")];
  const REACH = 14, GAP = 12, SMALL = 500;
  let current = -1, only = -1;

  const at = ([x, y]) => [view.scale * x + view.x, view.scale * y + view.y];
  const seen = (place) => (only < 0 || data.group[place] === only) && view.holds(at(data.places[place]));
  const hide = () => {
    current = -1;
    tip.hidden = true;
    ring.setAttribute("visibility", "hidden");
  };
  const write = (place) => {
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
  };
  const show = (place) => {
    current = place;
    const [x, y] = at(data.places[place]), size = drawing.getBoundingClientRect();
    const scale = size.width / drawing.viewBox.baseVal.width;
    ring.setAttribute("cx", x);
    ring.setAttribute("cy", y);
    ring.setAttribute("visibility", "visible");
    write(place);
    tip.hidden = false;
    tip.style.left = tip.style.top = "0";
    const left = Math.min(x * scale - tip.offsetWidth / 2, size.width - tip.offsetWidth);
    const below = y * scale + GAP, above = y * scale - GAP - tip.offsetHeight;
    const fits = below + tip.offsetHeight <= size.height || above < 0;
    tip.style.left = Math.max(0, left) + "px";
    tip.style.top = (fits ? below : above) + "px";
  };
  const nearest = (event) => {
    const [x, y] = view.place(event), width = drawing.getBoundingClientRect().width;
    let best = -1, least = (REACH / Math.min(1, width / drawing.viewBox.baseVal.width)) ** 2;
    data.places.forEach((point, place) => {
      const [a, b] = at(point), far = (a - x) ** 2 + (b - y) ** 2;
      if (far <= least && seen(place)) [best, least] = [place, far];
    });
    return best;
  };
  const point = (event) => {
    if (event.type === "pointermove" && event.buttons && view.scale > 1) return hide(); // it is drawn along
    const place = nearest(event);
    if (place < 0) hide();
    else if (place !== current) show(place);
  };

  // Grid lines, their numbers and the names of groups move with the points; what leaves the field is hidden.
  const movable = [...drawing.querySelectorAll(".grid, text:not(.name)")].map((element) => {
    const line = element.getAttribute("d"), numbers = line && line.match(/-?[\d.]+/g).map(Number);
    const [x, y] = numbers || [+element.getAttribute("x"), +element.getAttribute("y")];
    const across = numbers ? numbers[0] === numbers[2] : element.getAttribute("text-anchor") === "middle";
    const group = element.classList.contains("group");
    return { element, x, y, dx: across, dy: group || !across };
  });
  const draw = () => {
    const large = drawing.getBoundingClientRect().width < SMALL ? 1 : 0, [left, top, right, bottom] = data.frame;
    const found = paths.map(() => []);
    data.places.forEach((place, number) => {
      const [x, y] = at(place), group = data.group[number];
      if (view.holds([x, y])) found[group].push(`M${x.toFixed(1)} ${y.toFixed(1)}${data.outlines[group][large]}`);
    });
    paths.forEach((path, group) => path.setAttribute("d", found[group].join("")));
    for (const { element, x, y, dx, dy } of movable) {
      const [a, b] = at([x, y]), [overX, overY] = [dx ? a - x : 0, dy ? b - y : 0];
      const out = (dx && (a < left || a > right)) || (dy && (b < top || b > bottom + 6));
      element.setAttribute("transform", `translate(${overX.toFixed(1)} ${overY.toFixed(1)})`);
      element.setAttribute("visibility", out ? "hidden" : "visible");
    }
    if (current >= 0 && seen(current)) show(current);
    else hide();
  };
  const view = zoom(plot, data.frame, draw);
  draw();

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
    const start = shown.indexOf(current), next = shown[start < 0 ? 0 : (start + move + shown.length) % shown.length];
    if (!seen(next)) view.center(data.places[next]);
    show(next);
  });
  buttons.forEach((button, place) => button.addEventListener("click", () => {
    only = only === place ? -1 : place;
    buttons.forEach((one, other) => one.setAttribute("aria-pressed", String(other === only)));
    paths.forEach((one, other) => one.classList.toggle("faint", only >= 0 && other !== only));
    hide();
  }));
}
