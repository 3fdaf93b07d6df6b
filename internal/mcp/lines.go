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

// lineReader reads messages, one per line, and passes on the valid ones; it answers the others with an error. The SDK alone would end the
// session at the first invalid line and leave earlier requests unanswered. Batches, which only some protocol versions have, are split.
type lineReader struct {
	in   *bufio.Reader
	out  io.Writer
	rest []byte // of the line that is being passed on
}

// mark is the byte order mark with which some Windows programs begin their output.
var mark = []byte("\ufeff")

// Read implements io.Reader.
func (l *lineReader) Read(p []byte) (int, error) {
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
func (l *lineReader) next() (line []byte, err error) {
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

// take passes on the valid messages of a line. It returns write errors.
func (l *lineReader) take(line []byte) error {
	switch {
	case len(line) == 0:
		return nil
	case !utf8.Valid(line): // the JSON decoder would replace invalid characters
		return l.refuse(nil, jsonrpc.CodeParseError, errors.New("the message is not UTF-8: encode it as UTF-8"))
	}
	var message json.RawMessage
	if err := json.Unmarshal(line, &message); err != nil {
		return l.refuse(nil, jsonrpc.CodeParseError, fmt.Errorf("the line is not a JSON message: %w", err))
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

// refuse answers a message with an error, with the message's id if it has one.
func (l *lineReader) refuse(message []byte, code int64, problem error) error {
	var of struct{ ID any }
	_ = json.Unmarshal(message, &of) // without an id the answer has none
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

// locked is a writer for concurrent use whose every Write is one message.
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

// Close implements io.Closer. It does nothing: the caller closes the writer.
func (*locked) Close() error { return nil }
