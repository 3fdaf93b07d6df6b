package migrate

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"unicode/utf8"
)

// Text is what a file says, without a byte order mark. Reading it ends with an error where it is not UTF-8.
func Text(r io.Reader) (io.Reader, error) {
	in, err := begin(r)
	if err != nil {
		return nil, err
	}
	return &text{in: in, at: 1}, nil
}

// NotTextError is where a text ends to be one.
type NotTextError struct {
	Line    int
	Problem string
}

// Error implements error.
func (e *NotTextError) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Problem) }

// text is text that is looked at while it is read.
type text struct {
	in    *bufio.Reader
	at    int    // the line
	begun []byte // of the line, or of its end if it is long
}

// maxBegun is how much of a line is looked at to tell its encoding.
const maxBegun = 4 << 10

// Read implements io.Reader.
func (t *text) Read(b []byte) (int, error) {
	n, err := t.in.Read(b)
	if n == 0 && err != nil && !utf8.Valid(t.begun) {
		return 0, &NotTextError{t.at, "is not UTF-8"}
	}
	rest := b[:n]
	for len(rest) > 0 {
		line, ended := rest, bytes.IndexByte(rest, '\n')
		if ended >= 0 {
			line = rest[:ended+1]
		}
		rest = rest[len(line):]
		t.begun = append(t.begun, line...)
		if problem, _ := encodingProblem(completeRunes(t.begun, ended >= 0)); problem != "" {
			return 0, &NotTextError{t.at, problem}
		}
		switch {
		case ended >= 0:
			t.at, t.begun = t.at+1, t.begun[:0]
		case len(t.begun) > maxBegun:
			kept := t.begun[len(t.begun)-len(cut(t.begun)):]
			t.begun = append([]byte{}, kept...)
		}
	}
	return n, err
}

// completeRunes is text without a character that was not read to its end.
func completeRunes(data []byte, ended bool) []byte {
	if ended {
		return data
	}
	return data[:len(data)-len(cut(data))]
}

// cut is the beginning of a character at the end of data.
func cut(data []byte) []byte {
	for i := len(data) - 1; i >= 0 && i >= len(data)-utf8.UTFMax; i-- {
		if utf8.RuneStart(data[i]) {
			if !utf8.FullRune(data[i:]) {
				return data[i:]
			}
			return nil
		}
	}
	return nil
}
