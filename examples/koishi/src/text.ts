import { h } from 'koishi'

/** What a person reads of a message: its text, without pictures, with the names of those it mentions, but for the bot's own. */
export function plain(elements: h[], selfId?: string): string {
  return h.transform(elements, {
    at: ({ id, name }) => h.text(selfId && id === selfId ? '' : '@' + (name || id || '')),
    br: () => h.text('\n'),
    p: (_, children) => [...children, h.text('\n')],
  }).map((element) => element.toString(true)).join('').trim()
}
