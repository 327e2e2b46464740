// The search of the documentation. The index is loaded when the field is used for the first time.
const { base } = document.currentScript.dataset
const input = document.querySelector('input[type=search]')
const results = document.querySelector('#results')
const article = document.querySelector('article')
const resultsMax = 30
const excerptLength = 160
let index

input.addEventListener('focus', () => void load())
input.addEventListener('input', () => void search())
// `/` is what many sites use.
document.addEventListener('keydown', (event) => {
  if (event.key !== '/' || event.target === input) return
  event.preventDefault()
  input.focus()
})

function load() {
  index ??= fetch(`${base}search.json`).then((answer) => answer.json())
  return index
}

async function search() {
  const words = input.value.toLowerCase().split(/\s+/).filter(Boolean)
  const found = words.length === 0 ? [] : rank(await load(), words)
  results.hidden = words.length === 0
  article.hidden = words.length > 0
  results.replaceChildren(...found.slice(0, resultsMax).map((one) => entry(one, words)))
  if (words.length > 0 && found.length === 0) results.textContent = 'Nothing found.'
}

/** Sections that contain every word; a word in a heading or in the title of the page counts more. */
function rank(sections, words) {
  return sections
    .map((section) => {
      const [label, page, text] = [section.label, section.page, section.text].map((part) =>
        part.toLowerCase(),
      )
      const scores = words.map(
        (word) =>
          (label.includes(word) ? 10 : 0) +
          (page.includes(word) ? 5 : 0) +
          (text.includes(word) ? 1 : 0),
      )
      return { ...section, score: scores.some((score) => score === 0) ? 0 : sum(scores) }
    })
    .filter(({ score }) => score > 0)
    .toSorted((a, b) => b.score - a.score)
}

function entry({ page, label, href, text }, [word]) {
  const link = document.createElement('a')
  link.href = base + href
  link.textContent = page === label ? page : `${page}: ${label}`
  const excerpt = document.createElement('small')
  const at = Math.max(0, text.toLowerCase().indexOf(word) - excerptLength / 2)
  excerpt.textContent = text.slice(at, at + excerptLength)
  const item = document.createElement('li')
  item.append(link, excerpt)
  link.addEventListener('click', () => {
    input.value = ''
    void search()
  })
  return item
}

function sum(numbers) {
  return numbers.reduce((total, number) => total + number, 0)
}
