// Package koishi holds a plugin for Koishi, in TypeScript. It has no code of its own but the tests of it, which run a Koishi bot
// beside the real program.
package koishi
