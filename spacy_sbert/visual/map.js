// Shows the text of a point. A function of the figure, its data and zoom.js; texts reach the page as textContent alone.
(figure, data, zoom) => {
  const plot = figure.querySelector(".plot"), drawing = plot.querySelector("svg");
  const ring = plot.querySelector(".ring"), tip = plot.querySelector(".tip");
  const buttons = [...figure.querySelectorAll(".labels button")], paths = [...drawing.querySelectorAll(".points")];
  const REACH = 14, GAP = 12, SMALL = 500, OPAQUE = 0.85, LINE = 16, MOVES = [0, -14, 14, -28, 28, -42, 42];
  const SHARE = 0.3; // of the map that a text may cover
  let current = -1, only = -1, unit = 0, pressed = null;

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
  // The text stands below or above its point if it covers little of the map, else below or above the map; if there is
  // no room, it is cut. x, y: pixels from the corner of the map. The window shows what lies between start and end.
  const stand = (x, y, size) => {
    tip.style.cssText = "left: 0; top: 0";
    const start = -size.top, end = innerHeight - size.top, width = tip.offsetWidth;
    const find = (height) => {
      const beside = width * height <= SHARE * size.width * size.height ? [y + GAP, y - GAP - height] : [];
      return [...beside.filter((top) => top >= 0 && top + height <= size.height), size.height, -height].find(
        (top) => top >= start && top + height <= end);
    };
    let height = tip.offsetHeight, top = find(height);
    if (top === undefined) {
      height = Math.min(height, Math.floor(SHARE * size.width * size.height / width));
      tip.style.maxHeight = height + "px";
      top = find(height);
    }
    if (top === undefined) top = Math.max(start, Math.min(y + GAP, end - height));
    tip.style.left = Math.max(0, Math.min(x - width / 2, size.width - width)) + "px";
    tip.style.top = top + "px";
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
    stand(x * scale, y * scale, size);
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
    return { element, x, y, dx: across, dy: !across };
  });
  const names = data.middles.map(([name, group, x, y]) => {
    const element = document.createElementNS(drawing.namespaceURI, "text");
    element.setAttribute("class", "group");
    element.setAttribute("text-anchor", "middle");
    drawing.insertBefore(element, ring);
    return { element, name, group, place: [x, y], half: 0 };
  });
  // Texts have the same size on every screen. A name that is wider than the map loses letters.
  const resize = (scale) => {
    unit = scale;
    drawing.style.setProperty("--unit", unit);
    ring.setAttribute("r", 9 * Math.min(2, unit));
    plot.classList.toggle("small", unit > 1.25);
    const [left, , right] = data.frame;
    for (const one of names) {
      one.element.textContent = one.name;
      for (let length = one.name.length - 1; length && one.element.getComputedTextLength() > right - left; length--)
        one.element.textContent = one.name.slice(0, length) + "\u2026";
      one.half = one.element.getComputedTextLength() / 2 + 2 * unit;
    }
  };
  // Each name stands near the middle of its points, where it covers the fewest, and no other name.
  const putNames = () => {
    const [left, top, right, bottom] = data.frame, line = LINE * unit, taken = [], points = data.places.map(at);
    const covered = (x, y, half) =>
      points.filter(([a, b]) => Math.abs(a - x) < half && Math.abs(b - y) < line / 2).length;
    for (const { element, group, place, half } of names) {
      const [middle, height] = at(place), x = Math.min(Math.max(middle, left + half), right - half);
      const free = !view.holds([middle, height]) || (only >= 0 && group !== only) ? [] : MOVES
        .map((move) => Math.min(Math.max(height + move, top + line / 2), bottom - line / 2))
        .filter((y) => taken.every(([a, b, c]) => Math.abs(x - a) >= half + c || Math.abs(y - b) >= line));
      element.setAttribute("visibility", free.length ? "visible" : "hidden");
      if (!free.length) continue;
      const counts = free.map((y) => covered(x, y, half)), y = free[counts.indexOf(Math.min(...counts))];
      taken.push([x, y, half]);
      element.setAttribute("x", x.toFixed(1));
      element.setAttribute("y", (y + line / 4).toFixed(1));
    }
  };
  const draw = () => {
    const width = drawing.getBoundingClientRect().width, [left, top, right, bottom] = data.frame;
    const large = width < SMALL ? 1 : 0, scale = Math.min(2.4, Math.max(1, drawing.viewBox.baseVal.width / width));
    if (scale !== unit) resize(scale);
    const found = paths.map(() => []), labels = data.outlines.length;
    data.places.forEach((place, number) => {
      const [x, y] = at(place), group = data.group[number];
      if (!view.holds([x, y])) return;
      const shape = `M${x.toFixed(1)} ${y.toFixed(1)}${data.outlines[group][large]}`;
      found[(number * labels + group) % paths.length].push(shape);
    });
    paths.forEach((path, number) => path.setAttribute("d", found[number].join("")));
    drawing.style.setProperty("--opacity", Math.max(data.opacity, Math.min(OPAQUE, data.opacity * view.scale ** 0.5)));
    putNames();
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
  addEventListener("resize", draw);
  if (window.ResizeObserver) new ResizeObserver(() => unit && draw()).observe(plot);

  drawing.addEventListener("pointermove", point);
  drawing.addEventListener("pointerdown", (event) => {
    pressed = [event.clientX, event.clientY];
    point(event);
  });
  // A finger that is lifted leaves the text that it tapped on.
  drawing.addEventListener("pointerup", (event) => {
    const far = pressed && Math.hypot(event.clientX - pressed[0], event.clientY - pressed[1]);
    if (event.pointerType === "touch" && pressed && far < REACH) point(event);
    pressed = null;
  });
  drawing.addEventListener("pointercancel", hide);
  drawing.addEventListener("pointerleave", (event) => event.pointerType === "touch" || hide());
  document.addEventListener("pointerdown", (event) => plot.contains(event.target) || hide());
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
    paths.forEach((one, at) => one.classList.toggle("faint", only >= 0 && at % buttons.length !== only));
    draw();
    hide();
  }));
}
