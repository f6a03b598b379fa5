// Which part of the map is seen: a place p of the whole stands at view.scale * p + view.x (or y). A function of the
// plot, the frame of its field [left, top, right, bottom], and what draws it anew.
(plot, [left, top, right, bottom], draw) => {
  const MOST = 40, STEP = 1.6, KEYS = { "+": STEP, "=": STEP, "-": 1 / STEP, "0": 0 };
  const drawing = plot.querySelector("svg"), view = { scale: 1, x: 0, y: 0 }, held = new Map();
  const within = (value, low, high) => Math.min(high, Math.max(low, value));

  const move = (x, y) => {
    view.x = within(x, right * (1 - view.scale), left * (1 - view.scale));
    view.y = within(y, bottom * (1 - view.scale), top * (1 - view.scale));
    plot.classList.toggle("zoomed", view.scale > 1);
    draw();
  };
  // factor: 0 shows the whole map. What stands at x, y stays there.
  const zoom = (factor, [x, y] = [(left + right) / 2, (top + bottom) / 2]) => {
    const before = view.scale;
    view.scale = within(before * factor, 1, MOST);
    move(x - (x - view.x) * view.scale / before, y - (y - view.y) * view.scale / before);
  };
  view.place = (event) => {
    const size = drawing.getBoundingClientRect(), scale = size.width / drawing.viewBox.baseVal.width;
    return [(event.clientX - size.left) / scale, (event.clientY - size.top) / scale];
  };
  view.holds = ([x, y]) => x >= left && x <= right && y >= top && y <= bottom;
  view.center = ([x, y]) => move((left + right) / 2 - view.scale * x, (top + bottom) / 2 - view.scale * y);

  const bar = document.createElement("div");
  bar.className = "zoom";
  const BUTTONS = [["Zoom in", "+", STEP], ["Zoom out", "\u2212", 1 / STEP], ["Whole map", "Reset", 0]];
  for (const [name, sign, factor] of BUTTONS) {
    const button = document.createElement("button");
    button.type = "button";
    button.title = name;
    button.setAttribute("aria-label", name);
    button.textContent = sign;
    button.addEventListener("click", () => zoom(factor));
    bar.append(button);
  }
  plot.append(bar);
  plot.addEventListener("keydown", (event) => {
    if (!(event.key in KEYS) || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    event.stopPropagation();
    zoom(KEYS[event.key]);
  });
  drawing.addEventListener("wheel", (event) => {
    const asked = event.ctrlKey || event.metaKey || plot.matches(":focus-within");
    if (!asked || (view.scale === 1 && event.deltaY > 0)) return; // the page scrolls
    event.preventDefault();
    const pixels = event.deltaY * (event.deltaMode ? 33 : 1);
    zoom(Math.exp(-within(pixels, -50, 50) / 100), view.place(event));
  }, { passive: false });
  drawing.addEventListener("pointerdown", (event) => held.set(event.pointerId, view.place(event)));
  for (const end of ["pointerup", "pointercancel", "pointerleave"])
    drawing.addEventListener(end, (event) => held.delete(event.pointerId));
  drawing.addEventListener("pointermove", (event) => {
    const before = held.get(event.pointerId), [x, y] = view.place(event);
    if (!before) return;
    held.set(event.pointerId, [x, y]);
    const other = [...held].find(([id]) => id !== event.pointerId);
    if (!other) return view.scale > 1 && move(view.x + x - before[0], view.y + y - before[1]);
    const [a, b] = other[1];
    zoom(Math.hypot(x - a, y - b) / Math.hypot(before[0] - a, before[1] - b), [a, b]);
  });
  return view;
}
