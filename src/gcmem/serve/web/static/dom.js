// Every text goes in through textContent: what a memory says is never markup.

export const byId = (id) => document.getElementById(id);

/** Makes an element: el("p", {class: "x", on: {click}}, "text", child). */
export function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "on") {
      for (const [event, listener] of Object.entries(value)) node.addEventListener(event, listener);
    } else {
      node.setAttribute(name, value === true ? "" : String(value));
    }
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return node;
}

/** Tells the kinds of memories apart by shape, not by colour alone. */
export const glyph = (kind) => el("span", { class: `glyph ${kind}`, "aria-hidden": "true" });
