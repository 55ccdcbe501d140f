// Draw everything, and again when the window or the theme changes.
startFacts();
startMemory();
startMatrices();
startRecomputed();
startLargest();
startProgress();

function drawAgain() {
  drawMemory();
  drawMatrices();
  drawProgress();
}

let waiting = 0;
window.addEventListener('resize', () => {
  cancelAnimationFrame(waiting);
  waiting = requestAnimationFrame(() => {
    memoryView.x = null;
    if (memoryView.at < 0) memoryView.at = after.peakAt;
    drawAgain();
  });
});
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', drawAgain);
