//go:build !race && linux

package main

import (
	"bytes"
	"fmt"
	"net"
	"strings"

	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"

	"github.com/memsidecar/memsidecar/internal/testkit/sidecartest"
)

// overHTTP1 sends the beginning of a request over each of 100 HTTP connections, and reads no answer.
func overHTTP1(path string, body func() []byte, claim int) func(*attacker) {
	return func(a *attacker) {
		text := body()
		a.over(100, func(int) {
			conn := a.dial(a.http)
			if conn == nil {
				return
			}
			if c, ok := conn.(countingConn).Conn.(*net.TCPConn); ok {
				_ = c.SetReadBuffer(4 << 10)
			}
			_, _ = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\n"+
				"Accept: application/json, text/event-stream\r\nMemsidecar-User: bot\r\nContent-Length: %d\r\n\r\n%s", path, a.token, max(claim, len(text)), text)
		})
	}
}

func pageOf(user string) *memsidecarv1.ListMemoriesRequest {
	return &memsidecarv1.ListMemoriesRequest{Scope: sidecartest.Direct(user), PageSize: 1000}
}

func messagesOf(user string) *memsidecarv1.ListMessagesRequest {
	scope := sidecartest.Direct(user)
	scope.SessionId = "long"
	return &memsidecarv1.ListMessagesRequest{Scope: scope, PageSize: 1000}
}

var memoryAttacks = []attack{
	{"none", false, func(*attacker) {}},
	{"gzip bombs of 60 MiB, read token", true, compressionBombs(60 << 20)},
	{"gzip bombs of 8 MiB, read token", true, compressionBombs(8<<20 - 1024)},
	{"gzip bombs of 60 MiB, no token", false, withoutToken(compressionBombs(60 << 20))},
	{"endless headers from 60 strangers", true, endlessHeaders},
	{"40 unread exports", true, unreadAnswers(40, 1, exportMethod, &memsidecarv1.ExportUserRequest{Scope: &memsidecarv1.Scope{UserId: "much"}})},
	{"200 unread exports over 2 connections", false, unreadAnswers(2, 100, exportMethod,
		&memsidecarv1.ExportUserRequest{Scope: &memsidecarv1.Scope{UserId: "much"}})},
	{"200 unread lists of memories", false, unreadAnswers(4, 50, listMethod, pageOf("much"))},
	{"200 unread lists of messages", true, unreadAnswers(4, 50, messagesMethod, messagesOf("much"))},
	{"200 uploads of 8 MiB without an end", true, incompleteMessages(4, 50, 8<<20-1024, 16<<10)},
	{"6,000 uploads of 60 KiB without an end", false, incompleteMessages(60, 100, 60<<10, 16<<10)},
	{"200 uploads in frames of one byte", false, incompleteMessages(4, 50, 60<<10, 1)},
	{"2,000 idle strangers", false, func(a *attacker) {
		a.token = ""
		a.over(40, func(int) {
			for range 50 {
				a.raw(a.grpc, false)
			}
		})
	}},
	{"100 HTTP bodies of 8 MiB without an end", true, overHTTP1(retrieveMethod, func() []byte { return bytes.Repeat([]byte(" "), 8<<20-1024) }, 8<<20)},
	{"100 HTTP bodies of 8 MiB, nested", false, overHTTP1(messagesMethod, func() []byte {
		return []byte(`{"scope":` + strings.Repeat("[", 4<<20) + strings.Repeat("]", 4<<20-1024) + "}")
	}, 0)},
	{"100 HTTP queries of 8 MiB", false, overHTTP1(retrieveMethod, func() []byte {
		return []byte(`{"scope":{"userId":"bot"},"query":"` + strings.Repeat("x", 8<<20-1024) + `"}`)
	}, 0)},
	{"100 MCP bodies of 8 MiB", false, overHTTP1("/mcp", func() []byte {
		return []byte(`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"recall","arguments":{"query":"` + strings.Repeat("x", 8<<20-1024) + `"}}}`)
	}, 0)},
	{"100 unread HTTP lists of messages", false, overHTTP1(messagesMethod, func() []byte {
		return []byte(`{"scope":{"userId":"much","channelKind":"CHANNEL_KIND_DIRECT","sessionId":"long"},"pageSize":1000}`)
	}, 0)},
	{"100 unread HTTP exports", false, overHTTP1(exportMethod, func() []byte { return []byte(`{"scope":{"userId":"much"}}`) }, 0)},
	{"2,000 strangers with half an HTTP header", false, func(a *attacker) {
		a.over(40, func(int) {
			for range 50 {
				if conn := a.dial(a.http); conn != nil {
					_, _ = fmt.Fprintf(conn, "POST / HTTP/1.1\r\nX: %s", strings.Repeat("x", 60<<10))
				}
			}
		})
	}},
}
