"""How a report in HTML looks, on light and dark screens, wide and narrow ones."""

STYLE = """
:root { --page: #fff; --text: #1d2330; --soft: #5a6275; --rule: #d9dde5; --tint: #f5f6f9; --main: #2f6db5;
  --fill: #a9c6e8; --c0: #2f6db5; --c1: #b5562f; --c2: #2f8a57; --c3: #8a4fb0; --c4: #a8871c; --c5: #666; }
@media (prefers-color-scheme: dark) { :root { --page: #14171d; --text: #e6e9ef; --soft: #a0a8b8; --rule: #343a46;
  --tint: #1c2029; --main: #7fb2ec; --fill: #33598a; --c0: #7fb2ec; --c1: #ec9c78; --c2: #79cd9f; --c3: #c79be6;
  --c4: #e0c15e; --c5: #aaa; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--text); font: 16px/1.5 system-ui, sans-serif; }
main { max-width: 72rem; margin: 0 auto; padding: 1rem; }
h1, h2 { line-height: 1.25; overflow-wrap: anywhere; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.15rem; margin: 2rem 0 .5rem; }
p { max-width: 48rem; } .caption { color: var(--soft); font-size: .875rem; margin: .4rem 0; }
a { color: var(--main); } li { overflow-wrap: anywhere; max-width: 48rem; }
nav ul { columns: 18rem; padding-left: 1.2rem; font-size: .875rem; }
.wide { overflow-x: auto; } .wide:focus-visible { outline: 2px solid var(--main); }
table { border-collapse: collapse; font-size: .875rem; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .7rem; text-align: left; vertical-align: top; border-bottom: 1px solid var(--rule); }
th { font-weight: 600; } tbody th { font-weight: 400; } tbody tr:nth-child(even) { background: var(--tint); }
thead th { border-bottom: 2px solid var(--soft); vertical-align: bottom; }
.figure { text-align: right; white-space: nowrap; } thead .figure { white-space: normal; }
.words { overflow-wrap: break-word; max-width: 38rem; }
sup { line-height: 0; font-size: .7em; }
.plots { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 26rem), 1fr)); gap: 1.5rem; }
figure { margin: 0; } figcaption { font-size: .875rem; overflow-wrap: anywhere; margin-bottom: .4rem; }
svg { width: 100%; max-width: 36rem; height: auto; display: block; }
svg text { fill: var(--text); font: 12px system-ui, sans-serif; } svg .small { font-size: 10.5px; fill: var(--soft); }
svg .name { fill: var(--soft); } svg path { fill: none; } svg .grid { stroke: var(--rule); }
svg .dots { stroke: var(--main); stroke-width: 3.5; stroke-linecap: round; opacity: .4; }
svg .edge { stroke: var(--soft); } svg .box { fill: var(--fill); stroke: var(--main); }
svg .median { stroke: var(--text); stroke-width: 2; } svg .bar { fill: var(--fill); }
svg .whisker { stroke: var(--text); stroke-width: 1.2; }
svg .line { stroke-width: 2; } svg .level { stroke-width: 1.5; stroke-dasharray: 5 4; }
svg .dot { stroke-width: 7; stroke-linecap: round; }
svg .c0 { stroke: var(--c0); } svg .c1 { stroke: var(--c1); } svg .c2 { stroke: var(--c2); }
svg .c3 { stroke: var(--c3); } svg .c4 { stroke: var(--c4); } svg .c5 { stroke: var(--c5); }
@media print { .wide { overflow: visible; } }
"""
