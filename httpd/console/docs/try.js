// Fills the forms of the API reference in: each asks this node, and shows what it answers.

const shown = ['X-Ledger-Slot', 'X-Ledger-Lag-Ms', 'X-Ledger-Partial', 'X-RateLimit-Limit', 'X-RateLimit-Remaining', 'X-RateLimit-Reset', 'ETag', 'Cache-Control', 'Retry-After'];
const longest = 100_000; // characters of a body that are shown

for (const form of document.querySelectorAll('form.try')) {
  const template = form.dataset.path;
  const button = form.querySelector('button');
  const output = form.querySelector('output');
  const curl = form.parentElement.querySelector('.curl');

  // target returns the path and query that the form asks for.
  const target = () => {
    const query = new URLSearchParams();
    let path = template;
    for (const [name, value] of new FormData(form)) {
      if (path.includes(`{${name}}`)) {
        path = path.replace(`{${name}}`, encodeURIComponent(value.trim()));
      } else if (value.trim()) {
        query.set(name, value.trim());
      }
    }
    return path + (query.size ? `?${query}` : '');
  };
  const showCurl = () => { curl.textContent = `curl '${location.origin}${target().replaceAll("'", '%27')}'`; };
  form.addEventListener('input', showCurl);
  showCurl();

  form.addEventListener('submit', async (event) => {
    event.preventDefault();
    button.disabled = true;
    let wait = 0;
    try {
      const response = await fetch(target());
      const fields = shown.filter((name) => response.headers.has(name)).map((name) => `${name}: ${response.headers.get(name)}`);
      show(output, `${response.status} ${response.statusText}`, `${fields.join('\n')}\n\n${pretty(await response.text())}`);
      wait = response.status === 429 ? Number(response.headers.get('Retry-After')) : 0;
    } catch {
      show(output, 'The node does not answer.', '');
    }
    enable(button, wait);
  });
  form.hidden = false;
}

function show(output, status, text) {
  const strong = document.createElement('strong');
  const pre = document.createElement('pre');
  strong.textContent = status;
  pre.textContent = text;
  output.replaceChildren(strong, ...(text ? [pre] : []));
}

// enable lets a button be pressed again, after so many seconds, which it counts.
function enable(button, seconds) {
  button.disabled = seconds > 0;
  button.textContent = seconds > 0 ? `Try again in ${seconds} s` : 'Try it';
  if (seconds > 0) {
    setTimeout(() => enable(button, seconds - 1), 1000);
  }
}

// pretty indents JSON as text, so that integers stay exact. Other text stays as it is.
function pretty(text) {
  if (text.length > longest) {
    return `${text.slice(0, longest)}\n… and ${text.length - longest} characters more`;
  }
  if (!/^[{[]/.test(text)) {
    return text;
  }
  let indent = '\n';
  return text.replace(/"(?:[^"\\]|\\.)*"|[{}[\],:]/g, (token) => {
    switch (token) {
      case '{': case '[': return token + (indent += '  ');
      case '}': case ']': return (indent = indent.slice(0, -2)) + token;
      case ',': return token + indent;
      case ':': return ': ';
    }
    return token;
  });
}
