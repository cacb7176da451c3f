// Search by questions. Sphinx's own search wants every word of a query on a page, so "how do I time my own kernel"
// finds what happens to have all of them. Here each word counts by how rare it is, most in the title of a page, then in
// its headings, then in its text; the page with the largest sum comes first. Works from file://, as Sphinx's index does.
// Pages for contributors are shown only to whoever ticks the box below the field (in the address: contribute=1).
// Words that users type and a page does not use stand in it as <!-- keywords: … -->: made-keywords.js has them.
"use strict";

const WEIGHTS = { title: 12, keyword: 8, heading: 4, text: 1 };
// Pages of everything come after pages that answer.
const LATER = [
  [/changelog$/, 0.2],
  [/^contribute\//, 0.4],
  [/^reference\/(python\/|command-line$)/, 0.6],
  [/^(start|howto|concepts|reference|notebooks)\/index$/, 0.6],
];

// What was changed and how to report a fault are in that folder, too, and for everybody.
const FOR_CONTRIBUTORS = /^contribute\/(?!(changelog|security)$)/;
const wanted = (docname) => document.getElementById("contribute").checked || !FOR_CONTRIBUTORS.test(docname);

const rank = (searchTerms, excludedTerms) => {
  const { terms, titleterms, docnames, filenames, titles } = Search._index;
  const stemmer = new Stemmer();
  const stems = (words) => new Set(splitQuery(words.toLowerCase()).map((word) => stemmer.stemWord(word)));
  const asList = (files) => (files === undefined ? [] : files.length === undefined ? [files] : files);
  const own = (map, word) => (Object.hasOwn(map, word) ? asList(map[word]) : []);
  const titleStems = titles.map(stems);
  const keywordStems = docnames.map((name) => stems(KEYWORDS[name] || ""));
  const sums = new Map();
  const found = new Map();
  const named = new Set(); // pages whose title or keywords have a word of the question
  const shown = docnames.map(wanted);
  const count = shown.filter((one) => one).length;
  let most = 0;
  for (const word of searchTerms) {
    let text = own(terms, word);
    const keyed = docnames.map((_, page) => page).filter((page) => keywordStems[page].has(word));
    if (!text.length && !keyed.length && word.length > 3) {
      // No page has the word as it is: take those that begin with it.
      text = Object.keys(terms).filter((term) => term.startsWith(word)).flatMap((term) => asList(terms[term]));
    }
    const headings = own(titleterms, word);
    const pages = new Set([...text, ...headings, ...keyed].filter((page) => shown[page]));
    if (!pages.size) continue;
    const rarity = Math.log(1 + count / pages.size);
    most += rarity;
    for (const page of pages) {
      let weight = WEIGHTS.text;
      if (headings.includes(page)) weight += WEIGHTS.heading;
      if (titleStems[page].has(word)) weight += WEIGHTS.title / Math.sqrt(titleStems[page].size);
      if (keywordStems[page].has(word)) weight += WEIGHTS.keyword;
      if (titleStems[page].has(word) || keywordStems[page].has(word)) named.add(page);
      sums.set(page, (sums.get(page) || 0) + rarity * weight);
      found.set(page, (found.get(page) || 0) + rarity);
    }
  }
  const results = [];
  for (const [page, sum] of sums) {
    if (found.get(page) < most / 2 && !named.has(page)) continue;
    if ([...excludedTerms].some((word) => own(terms, word).includes(page) || own(titleterms, word).includes(page)))
      continue;
    const later = LATER.find(([pattern]) => pattern.test(docnames[page]));
    const score = (100 * sum * (later ? later[1] : 1)) / (most * (1 + WEIGHTS.heading + WEIGHTS.title));
    results.push([docnames[page], titles[page], "", null, score, filenames[page], SearchResultKind.text]);
  }
  return results;
};

// searchtools.js is loaded after this file and starts at the same event after it. Only the search page shows results.
document.addEventListener("DOMContentLoaded", () => {
  const form = document.querySelector(".bd-search-container form");
  if (!form) return;
  form.insertAdjacentHTML(
    "afterend",
    '<label class="contribute"><input type="checkbox" id="contribute"> also pages for contributors</label>',
  );
  const box = document.getElementById("contribute");
  box.checked = new URLSearchParams(window.location.search).get("contribute") === "1";
  box.addEventListener("change", () => {
    const address = new URL(window.location);
    address.searchParams.set("q", form.querySelector("input[name=q]").value);
    address.searchParams.set("contribute", box.checked ? "1" : "0");
    window.location = address;
  });
  Search.performTermsSearch = rank;
  const { _performSearch } = Search;
  Search._performSearch = (...words) => _performSearch(...words).filter((result) => wanted(result[0]));
  // Names are written gw.cumsum on every page; the index has gridwise_py.cumsum.
  const { query } = Search;
  Search.query = (words) => query(words.replace(/\bgw\./g, ""));
});
