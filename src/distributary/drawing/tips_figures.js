  const figures = (v) => facts.details[v].map((line) => ["", [line]]);

  function describeNode(event, v) {
    showTip(event, facts.nodes[v], figures(v));
  }

  function describeLink(event, v) {
    showTip(event, `${facts.nodes[facts.parents[v]]} → ${facts.nodes[v]}`, figures(v));
  }

  // Titles say the same where no script runs; here they would cover the tooltip.
  for (const title of picture.querySelectorAll("title")) title.remove();

