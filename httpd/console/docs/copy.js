// Gives each block of code a button that copies it.

for (const block of document.querySelectorAll('main pre')) {
  const button = document.createElement('button');
  const say = (text) => { button.textContent = text; };
  button.type = 'button';
  button.className = 'copy';
  say('copy');
  button.addEventListener('click', async () => {
    try {
      await navigator.clipboard.writeText(block.textContent.trimEnd());
      say('copied');
    } catch {
      getSelection().selectAllChildren(block); // no clipboard, as without TLS: the block is marked instead
      say('marked');
    }
    setTimeout(say, 2000, 'copy');
  });
  const frame = document.createElement('div');
  frame.className = 'code';
  block.replaceWith(frame);
  frame.append(block, button);
}
