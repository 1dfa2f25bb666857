"""The page's style sheet: light and dark, wide and narrow, screen and paper."""

CSS = """
:root {
  color-scheme: light dark;
  --paper: #faf9f6; --card: #ffffff; --ink: #1c2430; --muted: #5a6371; --line: #e3e0d8;
  --learner: #0b62a4; --expert: #b85a08; --forbidden: #93307a; --allowed: #0b7a5b;
  --proven: #a3abb8; --implicated: #dadde3; --unknown: #f3f1ea; --dots: #cbc6b9;
  --shadow: 0 1px 2px rgb(28 36 48 / .05), 0 6px 24px rgb(28 36 48 / .05);
  --serif: ui-serif, "Iowan Old Style", "Palatino Linotype", Palatino, Georgia,
    "Liberation Serif", serif;
  --sans: ui-sans-serif, system-ui, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif;
  --mono: ui-monospace, "SF Mono", Menlo, Consolas, "Liberation Mono", monospace;
}
@media (prefers-color-scheme: dark) {
  :root {
    --paper: #12161c; --card: #1a2028; --ink: #e9e7e2; --muted: #a0a9b6; --line: #2d3541;
    --learner: #74b6f3; --expert: #f0a55e; --forbidden: #e78fcf; --allowed: #55c7a5;
    --proven: #66707f; --implicated: #3c4552; --unknown: #1d242d; --dots: #46505d;
    --shadow: none;
  }
}
* { box-sizing: border-box; }
html { -webkit-text-size-adjust: 100%; }
body {
  margin: 0; background: var(--paper); color: var(--ink);
  font: 16px/1.6 var(--sans); font-variant-numeric: tabular-nums;
}
main { max-width: 1120px; margin: 0 auto; padding: 40px 28px 72px; }
h1, h2 { font-family: var(--serif); font-weight: 600; letter-spacing: -.01em; text-wrap: balance; }
h1 { font-size: clamp(1.75rem, 1.1rem + 2.6vw, 2.7rem); line-height: 1.16; margin: .35em 0 .5em;
  max-width: 26em; }
h2 { font-size: 1.6rem; line-height: 1.25; margin: 0 0 .35em; }
h3 { font-size: .98rem; line-height: 1.35; font-weight: 600; margin: 0 0 .4em; }
p { margin: 0 0 .9em; max-width: 68ch; text-wrap: pretty; }
ul { margin: 0 0 1em; padding-left: 1.15em; max-width: 68ch; }
li { margin: .3em 0; }
section { margin-top: 64px; }
.eyebrow { color: var(--muted); font-size: .84rem; letter-spacing: .02em; margin: 0; }
.lede { font-size: 1.12rem; line-height: 1.6; }
.muted, figcaption { color: var(--muted); }
figcaption, .small { font-size: .88rem; line-height: 1.5; }
figcaption { margin-top: .5em; }
.none { color: var(--muted); }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 14px;
  box-shadow: var(--shadow); padding: 22px; }
.off { display: none; }

.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(168px, 1fr)); gap: 14px;
  margin: 28px 0 22px; padding: 0; list-style: none; max-width: none; }
.tiles li { margin: 0; padding: 15px 18px 14px; }
.tiles b { display: block; font: 600 1.85rem/1.2 var(--serif); letter-spacing: -.01em; }
.tiles span { display: block; font-size: .84rem; line-height: 1.4; color: var(--muted); }
.words { margin: 0; padding: 14px 18px; border-left: 3px solid var(--forbidden);
  background: var(--card); border-radius: 0 10px 10px 0; font-family: var(--mono);
  font-size: .86rem; line-height: 1.65; overflow-wrap: anywhere; max-width: none;
  max-height: 14em; overflow-y: auto; }

#explorer { display: grid; grid-template-columns: minmax(0, 1.55fr) minmax(260px, 1fr);
  gap: 30px; align-items: start; margin-top: 20px; }
.stage { position: relative; }
svg { display: block; width: 100%; height: auto; overflow: visible; }
svg text { font-family: var(--sans); fill: var(--ink); }
.map { max-height: 82vh; }
.map .ground { fill: var(--card); }
.map .mesh { stroke: var(--line); stroke-width: 1; fill: none; }
.map .edge { font-size: calc(11px * var(--zoom)); fill: var(--muted); }
.hatch-ground { fill: var(--forbidden); opacity: .13; }
.hatch-line { stroke: var(--forbidden); stroke-width: 3; opacity: .75; }
.dots-dot { fill: var(--dots); }
#map .forbidden { fill: url(#map-hatch); }
#share-map .forbidden { fill: url(#share-map-hatch); }
.share-tint { fill: var(--forbidden); }
.map .free { fill: none; }
.visits { fill: var(--learner); }
.paths { fill: none; stroke: var(--expert); stroke-linejoin: round; stroke-linecap: round; }
.single .paths, .layer .paths { stroke-opacity: .8; }
.outline, .paths path { vector-effect: non-scaling-stroke; }
.outline { fill: none; stroke-linecap: square; }
.outline.truth { stroke: var(--ink); stroke-width: 3.2; }
.outline.chosen { stroke: var(--forbidden); stroke-width: 3.2; stroke-dasharray: 7 5;
  stroke-linecap: butt; }
.place circle { fill: var(--ink); }
.place.start text { fill: var(--paper); }
.place rect { fill: var(--card); stroke: var(--ink); stroke-width: 1.6;
  vector-effect: non-scaling-stroke; }
.place text { font-size: calc(13px * var(--zoom)); font-weight: 700; }
.place.dim { opacity: .28; }
.tint.allowed { fill: none; }
.tint.proven { fill: var(--proven); }
.tint.implicated { fill: var(--implicated); }
#map .tint.unknown { fill: url(#map-dots); }
#evidence-map .tint.unknown { fill: url(#evidence-map-dots); }
.letter, .share { font-size: 15px; font-weight: 600; paint-order: stroke; stroke-width: 3px;
  stroke: var(--card); stroke-linejoin: round; }
.letter.allowed { fill: var(--allowed); stroke-width: 2px; }
.letter.proven { font-weight: 800; stroke: var(--proven); }
.letter.implicated { stroke: var(--implicated); }
.letter.unknown { fill: var(--muted); font-weight: 500; }
.share { font-size: 12px; }
.cell { fill: transparent; cursor: default; }
#cells:focus { outline: none; }
.ring { fill: none; stroke: var(--ink); stroke-width: 2.5; pointer-events: none;
  vector-effect: non-scaling-stroke; }
#tip { position: absolute; z-index: 2; width: max-content; max-width: min(330px, 92%);
  padding: 11px 14px; background: var(--ink); color: var(--paper); border-radius: 10px;
  font-size: .84rem; line-height: 1.45; pointer-events: none; box-shadow: 0 6px 24px
  rgb(0 0 0 / .25); }
#tip p { margin: 0 0 .35em; max-width: none; }
#tip p:first-child { font-weight: 700; }
#tip p:last-child { margin: 0; }

.controls { display: grid; gap: 20px; }
.controls fieldset { border: 0; margin: 0; padding: 0; }
.controls legend, .controls .name { font-weight: 600; font-size: .92rem; padding: 0;
  margin-bottom: 6px; display: block; }
.slider { display: grid; grid-template-columns: auto 1fr; gap: 12px; align-items: center; }
input[type=range] { width: 100%; accent-color: var(--forbidden); margin: 0; }
input[type=checkbox] { accent-color: var(--learner); width: 17px; height: 17px; margin: 0;
  flex: none; }
button, select { font: inherit; font-size: .9rem; color: var(--ink); background: var(--card);
  border: 1px solid var(--line); border-radius: 8px; padding: 6px 12px; }
button { min-width: 5.2em; cursor: pointer; }
select { width: 100%; }
button:hover, select:hover { border-color: var(--muted); }
:focus-visible { outline: 2.5px solid var(--learner); outline-offset: 2px; }
.layer { display: flex; gap: 10px; align-items: center; padding: 4px 0; font-size: .92rem; }
.layer svg { width: 26px; height: 20px; flex: none; overflow: hidden; }
.says { border-top: 1px solid var(--line); padding-top: 16px; }
.says p { margin: 0 0 .5em; font-size: .92rem; line-height: 1.5; }

.charts { display: grid; grid-template-columns: repeat(auto-fill, minmax(330px, 1fr)); gap: 18px;
  margin: 22px 0; }
@media (min-width: 700px) { .charts.even { grid-template-columns: 1fr 1fr; } }
figure { margin: 0; }
.chart { padding: 18px 20px 16px; box-shadow: none; }
.gridline { stroke: var(--line); stroke-width: 1; }
.tick { font-size: 11px; fill: var(--muted) !important; }
.label { font-size: 12px; font-weight: 600; }
.guide { stroke: var(--muted); stroke-width: 1; stroke-dasharray: 2 3; }
.hit { fill: transparent; cursor: pointer; }
.series .main { fill: none; stroke: var(--c); stroke-width: 2.2; stroke-linejoin: round; }
.series .thin { fill: none; stroke: var(--c); stroke-width: 1; opacity: .28; }
.series .band { fill: var(--c); opacity: .16; }
.series .dot { fill: var(--c); stroke: var(--card); stroke-width: 1.2; }
.series .hollow { fill: var(--card); stroke: var(--c); stroke-width: 1.6; }
.learner { --c: var(--learner); } .expert { --c: var(--expert); }
.bound { --c: var(--forbidden); } .plain { --c: var(--allowed); }
svg text.label { fill: var(--c); }

.scroll { overflow-x: auto; margin: 0 0 14px; -webkit-overflow-scrolling: touch; }
table { border-collapse: collapse; width: 100%; font-size: .88rem; line-height: 1.4; }
th, td { text-align: right; padding: 8px 12px; border-bottom: 1px solid var(--line);
  white-space: nowrap; }
th { font-weight: 600; color: var(--muted); font-size: .8rem; vertical-align: bottom;
  white-space: normal; }
th:first-child, td:first-child { text-align: left; padding-left: 2px; }
td.text { text-align: left; white-space: normal; min-width: 15em; }
th.text { text-align: left; }
tbody tr:last-child td { border-bottom: 0; }
tr.current { background: color-mix(in srgb, var(--learner) 8%, transparent); }
.pick { display: inline-block; margin-left: 8px; padding: 1px 8px; border-radius: 99px;
  background: var(--forbidden); color: var(--card); font-size: .72rem; font-weight: 600; }
.two { display: grid; grid-template-columns: minmax(0, 1fr) minmax(0, 1.12fr); gap: 32px;
  align-items: start; margin-top: 18px; }
.two p, .two ul { font-size: .95rem; }
.key { display: grid; grid-template-columns: auto 1fr; gap: 10px 14px; margin: 0 0 18px;
  font-size: .92rem; line-height: 1.45; }
.key dt { font-weight: 700; min-width: 3.4em; text-align: center; border: 1px solid var(--line);
  border-radius: 7px; padding: 1px 8px; height: fit-content; }
.key dd { margin: 0; }
.key .proven { background: var(--proven); } .key .implicated { background: var(--implicated); }
.key .unknown { background: radial-gradient(var(--dots) 1px, transparent 1.3px) 0 0 / 7px 7px; }
.key .allowed { color: var(--allowed); }
details { margin: 0 0 12px; border: 1px solid var(--line); border-radius: 10px;
  background: var(--card); }
summary { cursor: pointer; padding: 10px 16px; font-weight: 600; font-size: .92rem; }
details > :not(summary) { margin: 0 16px 14px; }
pre { overflow-x: auto; font: .84rem/1.55 var(--mono); margin: 0; white-space: pre; }
pre.card { padding: 14px 18px; margin: 0 0 14px; box-shadow: none; }
code { font-family: var(--mono); font-size: .9em; overflow-wrap: anywhere; }
footer { margin-top: 56px; padding-top: 18px; border-top: 1px solid var(--line);
  color: var(--muted); font-size: .84rem; }
.walking { width: 100%; height: auto; }
.walking .floor { fill: var(--card); stroke: var(--line); stroke-width: .2; }
.walking .flagged { fill: var(--forbidden); opacity: .28; }
.walking .wall { fill: none; stroke: var(--ink); stroke-width: .12; opacity: .55; }
.walking .level { fill: none; stroke: var(--forbidden); stroke-width: .25; }
.walking .ant { fill: var(--learner); stroke: var(--card); stroke-width: .12; }
@media (max-width: 820px) {
  #explorer, .two { grid-template-columns: minmax(0, 1fr); gap: 22px; }
}
@media (max-width: 560px) {
  main { padding: 24px 16px 48px; }
  section { margin-top: 48px; }
  .card { padding: 14px; }
  .charts { grid-template-columns: minmax(0, 1fr); }
  .tiles { grid-template-columns: 1fr 1fr; gap: 10px; }
  .tiles b { font-size: 1.5rem; }
}
@media print {
  .controls, #tip { display: none; }
  #explorer { grid-template-columns: 1fr; }
  .card { box-shadow: none; break-inside: avoid; }
}
"""
