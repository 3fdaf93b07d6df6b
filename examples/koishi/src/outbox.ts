import { status } from '@grpc/grpc-js'
import { CallError } from './client'

/** What waits at most; it is only for as long as the sidecar is away. */
const capacity = 1000

/** After these it is tried again: the sidecar or its storage is away, or is overloaded. */
const passing = new Set([status.UNAVAILABLE, status.DEADLINE_EXCEEDED, status.RESOURCE_EXHAUSTED, status.ABORTED])

/** How often one is tried that is refused as too much: it may be too much whenever it comes. */
const patience = 10

export interface Listener {
  /** Something waits, and this is why. Once for each outage. */
  waiting(reason: string): void
  /** Nothing waits any more, and so many did that are acknowledged now. */
  handedOver(count: number): void
  /** One is given up. */
  lost(reason: string): void
}

/**
 * Hands dialogues over in their order, one at a time. While the sidecar is away they wait here, in memory: what was not acknowledged
 * when the bot stops is lost.
 */
export class Outbox<T> {
  private readonly queue: T[] = []
  private readonly settled: (() => void)[] = []
  private running = false
  private closed = false
  private delayed = false // since something of what waits could not be handed over
  private wake?: () => void

  /** send must be repeatable, throw a CallError, and wait for a sidecar that is away until its deadline. */
  constructor(private readonly send: (item: T) => Promise<void>, private readonly listener: Listener) {}

  /** It returns at once. */
  put(item: T) {
    if (this.closed) {
      this.listener.lost('the plugin is stopping')
      return
    }
    if (this.queue.length >= capacity) {
      this.queue.splice(this.running ? 1 : 0, 1) // the first one is under way
      this.listener.lost(`${capacity} dialogues wait already`)
    }
    this.queue.push(item)
    if (!this.running) void this.run()
  }

  /** Resolves with true when all is acknowledged, and with false when it is not after timeout milliseconds. */
  flush(timeout: number): Promise<boolean> {
    if (!this.running) return Promise.resolve(true)
    return new Promise((resolve) => {
      const timer = setTimeout(() => resolve(false), timeout)
      this.settled.push(() => {
        clearTimeout(timer)
        resolve(this.queue.length === 0)
      })
    })
  }

  /** Nothing is tried again after this. Returns how many are not acknowledged; the second time none. */
  close(): number {
    if (this.closed) return 0
    this.closed = true
    this.wake?.()
    return this.queue.length
  }

  private async run() {
    this.running = true
    let attempts = 0
    let late = 0
    while (this.queue.length > 0 && !this.closed) {
      const item = this.queue[0]
      try {
        await this.send(item)
        if (this.delayed) late++
      } catch (error) {
        attempts++
        const code = error instanceof CallError ? error.code : status.UNKNOWN
        const reason = error instanceof Error ? error.message : String(error)
        if (passing.has(code) && !(code === status.RESOURCE_EXHAUSTED && attempts >= patience)) {
          if (!this.delayed) this.listener.waiting(reason)
          this.delayed = true
          // A deadline was long enough already; an answer that says no comes at once.
          if (code !== status.DEADLINE_EXCEEDED && !this.closed) await this.pause(Math.min(100 * 2 ** attempts, 30_000))
          continue
        }
        this.listener.lost(reason)
      }
      attempts = 0
      if (this.queue[0] === item) this.queue.shift()
    }
    this.running = false
    if (this.delayed && !this.closed) this.listener.handedOver(late)
    this.delayed = false
    for (const done of this.settled.splice(0)) done()
  }

  private pause(milliseconds: number) {
    return new Promise<void>((resolve) => {
      const timer = setTimeout(resolve, milliseconds)
      this.wake = () => {
        clearTimeout(timer)
        resolve()
      }
    })
  }
}
