// Loads the page again as soon as the server answers.
setInterval(async () => {
  try {
    const answer = await fetch("/healthz", { cache: "no-store" });
    if (answer.ok) location.reload();
  } catch {
    // Not yet.
  }
}, 5000);
