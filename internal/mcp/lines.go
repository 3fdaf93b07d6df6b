package mcp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"unicode/utf8"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// lines reads messages, one a line, and hands on those that are some; to the others it answers what is wrong with them. The SDK
// alone would end the session over the first of those, and leave what was asked before without an answer. Batches, which only
// some versions of the protocol have, are handed on one by one.
type lines struct {
	in   *bufio.Reader
	out  io.Writer
	rest []byte // of what is handed on
}

// mark is the byte order mark that some programs of Windows begin with.
var mark = []byte("\ufeff")

// Read implements io.Reader.
func (l *lines) Read(p []byte) (int, error) {
	for len(l.rest) == 0 {
		line, err := l.next()
		if errors.Is(err, errTooLong) {
			err = l.refuse(nil, jsonrpc.CodeInvalidRequest, err)
		} else if err == nil {
			err = l.take(bytes.TrimSpace(bytes.TrimPrefix(line, mark)))
		}
		if err != nil {
			return 0, err
		}
	}
	n := copy(p, l.rest)
	l.rest = l.rest[n:]
	return n, nil
}

var errTooLong = fmt.Errorf("the message is longer than %d MiB", sdk.DefaultMaxLineLength>>20)

// next is the next line. One that is too long is read to its end and not kept. The error is io.EOF after the last.
func (l *lines) next() (line []byte, err error) {
	tooLong := false
	for {
		part, err := l.in.ReadSlice('\n')
		if tooLong = tooLong || len(line)+len(part) > sdk.DefaultMaxLineLength; tooLong {
			line = nil
		} else {
			line = append(line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case err != nil && (!errors.Is(err, io.EOF) || len(line) == 0 && !tooLong):
			return nil, err
		case tooLong:
			return nil, errTooLong
		default:
			return line, nil
		}
	}
}

// take hands on what is good of a line. The error is one of writing.
func (l *lines) take(line []byte) error {
	switch {
	case len(line) == 0:
		return nil
	case !utf8.Valid(line): // else it would be stored with its characters replaced
		return l.refuse(nil, jsonrpc.CodeParseError, errors.New("the message is not UTF-8: write it in UTF-8, whatever the system's encoding is"))
	}
	var message json.RawMessage
	if err := json.Unmarshal(line, &message); err != nil {
		return l.refuse(nil, jsonrpc.CodeParseError, fmt.Errorf("the line is not one message as JSON: %w", err))
	}
	messages := []json.RawMessage{message}
	if line[0] == '[' {
		if err := json.Unmarshal(line, &messages); err != nil || len(messages) == 0 {
			return l.refuse(nil, jsonrpc.CodeInvalidRequest, errors.New("the batch is empty"))
		}
	}
	for _, m := range messages {
		if _, err := jsonrpc.DecodeMessage(m); err != nil {
			if err := l.refuse(m, jsonrpc.CodeInvalidRequest, err); err != nil {
				return err
			}
			continue
		}
		l.rest = append(append(l.rest, m...), '\n')
	}
	return nil
}

// refuse answers what is wrong with a message, by its id if that can be told.
func (l *lines) refuse(message []byte, code int64, problem error) error {
	var of struct{ ID any }
	_ = json.Unmarshal(message, &of) // what has no id is answered without
	switch of.ID.(type) {
	case string, float64:
	default:
		of.ID = nil
	}
	type wrong struct {
		Code    int64  `json:"code"`
		Message string `json:"message"`
	}
	answer, err := json.Marshal(struct {
		Version string `json:"jsonrpc"`
		ID      any    `json:"id"`
		Error   wrong  `json:"error"`
	}{"2.0", of.ID, wrong{code, problem.Error()}})
	if err != nil {
		return err
	}
	_, err = l.out.Write(append(answer, '\n'))
	return err
}

// locked is a writer whose every Write is one message, by whomever it is written.
type locked struct {
	mu sync.Mutex
	io.Writer
}

// Write implements io.Writer.
func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Writer.Write(p)
}

// Close implements io.Closer: others close the writer.
func (*locked) Close() error { return nil }
