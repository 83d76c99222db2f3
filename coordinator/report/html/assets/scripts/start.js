// Everything above is defined; now it begins.

root.classList.add("js");
readColours();
data.workloads.forEach((_, number) => buildWorkload(number));
data.workloads.forEach((_, number) => buildStaircase(number));
for (const output of data.outputs || []) {
  const holder = byId(output.anchor);
  if (holder) place(holder, () => outputOption(output));
}
addCsvButtons(document);
setUpCommands();
setUpTheme();
followWidth();
setUpBar();
if (data.table) setUpTable();
setUpAddress();
