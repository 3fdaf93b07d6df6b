import { h } from 'koishi'

/** What a person reads of a message: its text, without pictures, with the names of those it mentions. */
export function plain(elements: h[]): string {
  return h.transform(elements, {
    at: ({ id, name }) => h.text('@' + (name || id || '')),
    br: () => h.text('\n'),
    p: (_, children) => [...children, h.text('\n')],
  }).map((element) => element.toString(true)).join('').trim()
}
