package migrate

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"unicode/utf8"
)

// Text reads a file as UTF-8 without a byte order mark. Reading other text returns a NotTextError.
func Text(r io.Reader) (io.Reader, error) {
	in, err := begin(r)
	if err != nil {
		return nil, err
	}
	return &text{in: in, at: 1}, nil
}

// NotTextError names the place where a file is not text.
type NotTextError struct {
	Line    int
	Problem string
}

// Error implements error.
func (e *NotTextError) Error() string { return fmt.Sprintf("line %d: %s", e.Line, e.Problem) }

// text is a reader that checks the encoding.
type text struct {
	in    *bufio.Reader
	at    int    // the line
	begun []byte // the start of the line, or its end if it is long
}

// maxBegun limits the part of a line from which the encoding is guessed.
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

// completeRunes returns data without an incomplete rune at its end.
func completeRunes(data []byte, ended bool) []byte {
	if ended {
		return data
	}
	return data[:len(data)-len(cut(data))]
}

// cut returns the start of a rune at the end of data.
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
