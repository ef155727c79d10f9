  const figures = (v) => facts.details[v].map((line) => ["", [line]]);

  function describeNode(event, v) {
    showTip(event, facts.nodes[v], figures(v));
  }

  function describeLink(event, v) {
    if (facts.links) {
      const [name, ...lines] = facts.links[v];
      return showTip(event, name, lines.map((line) => ["", [line]]));
    }
    showTip(event, `${facts.nodes[facts.parents[v]]} → ${facts.nodes[v]}`, figures(v));
  }

  // Titles say the same where no script runs; here they would cover the tooltip.
  for (const title of picture.querySelectorAll("title")) title.remove();

