  function describeNode(event, v) {
    const rows = [];
    if (v === 0) rows.push(["holds", listed(facts.held)]);
    else rows.push(["receives", listed(facts.carried[v])]);
    const conversions = facts.made[v].map(([from, to]) => {
      const line = document.createElement("div");
      line.append(kindLabel(from), " → ", kindLabel(to));
      return line;
    });
    if (conversions.length) rows.push(["converts", conversions]);
    rows.push(["wants", listed(facts.wanted[v])]);
    const own = facts.linkCosts[v] + facts.nodeCosts[v];
    rows.push(["costs", [amount(own) + share(own)]]);
    if (facts.nodeCosts[v] && facts.linkCosts[v]) {
      rows.push(["", [`${amount(facts.linkCosts[v])} link + ${amount(facts.nodeCosts[v])} conversions`]]);
    }
    showTip(event, facts.nodes[v] + (v === 0 ? " (root)" : ""), rows);
  }

  function describeLink(event, v) {
    showTip(event, `${facts.nodes[facts.parents[v]]} → ${facts.nodes[v]}`, [
      ["carries", listed(facts.carried[v])],
      ["costs", [amount(facts.linkCosts[v]) + share(facts.linkCosts[v])]],
    ]);
  }

