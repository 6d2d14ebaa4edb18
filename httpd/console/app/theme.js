// Runs before the page is painted, so that a chosen colour scheme does not flash.
try {
  const chosen = localStorage.getItem('theme');
  if (chosen === 'dark' || chosen === 'light') document.documentElement.dataset.theme = chosen;
} catch { /* no storage: the system's choice holds */ }
