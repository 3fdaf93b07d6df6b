package migrate

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/encoding/simplifiedchinese"
)

// maxRecordBytes bounds one record. A memory has at most 4,000 characters, but rows carry vectors and metadata.
const maxRecordBytes = 16 << 20

// magics are the first bytes of binary files, with a remedy for each.
var magics = []struct{ bytes, advice string }{
	{"\xff\xfe", "is UTF-16: convert it with iconv -f UTF-16 -t UTF-8"},
	{"\xfe\xff", "is UTF-16: convert it with iconv -f UTF-16 -t UTF-8"},
	{"\x1f\x8b", "is compressed: unpack it with gunzip, or read it from zcat FILE by way of -"},
	{"PK\x03\x04", "is a ZIP archive: unpack it first"},
	{"PAR1", "is Parquet: write its rows as JSONL, see docs/importing.md"},
}

// begin skips a byte order mark and refuses binary data.
func begin(r io.Reader) (*bufio.Reader, error) {
	in := bufio.NewReaderSize(r, 64<<10)
	head, err := in.Peek(4)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	if len(head) == 0 {
		return nil, errors.New("is empty")
	}
	for _, magic := range magics {
		if bytes.HasPrefix(head, []byte(magic.bytes)) {
			return nil, errors.New(magic.advice)
		}
	}
	if bytes.HasPrefix(head, []byte("\ufeff")) {
		_, err = in.Discard(len("\ufeff"))
		return in, err
	}
	return in, nil
}

// nextLine reads a line without its end. It skips the rest of a line that is too long. The error is io.EOF after the last line.
func nextLine(in *bufio.Reader) (line []byte, tooLong bool, err error) {
	for {
		part, err := in.ReadSlice('\n')
		if len(line)+len(part) > maxRecordBytes {
			line, tooLong = nil, true
		} else if !tooLong {
			line = append(line, part...)
		}
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && (len(line) > 0 || tooLong):
			return line, tooLong, nil
		case err != nil:
			return nil, tooLong, err
		default:
			return bytes.TrimRight(line, "\r\n"), tooLong, nil
		}
	}
}

var errTooLong = fmt.Errorf("is longer than %d MiB", maxRecordBytes>>20)

// encodingProblem returns the error for text that is not UTF-8. If the whole file has another encoding, the error says so.
func encodingProblem(data []byte) (problem string, whole bool) {
	if utf8.Valid(data) {
		return "", false
	}
	if chinese(data) {
		return "is not UTF-8 but looks like GBK: convert the file with iconv -f GB18030 -t UTF-8", true
	}
	return "is not UTF-8", false
}

// chinese reports whether bytes that are not UTF-8 are Chinese text in GBK: they are valid GBK with a run of Chinese characters. A single
// accented letter of Latin-1 can look like one of these characters, but not like two in a row.
func chinese(data []byte) bool {
	data = data[:min(len(data), 4<<10)]
	text, err := simplifiedchinese.GB18030.NewDecoder().Bytes(data)
	if err != nil {
		return false
	}
	runes := []rune(string(text))
	run, longest := 0, 0
	for i, r := range runes {
		if r == utf8.RuneError && i < len(runes)-2 { // the last one may be incomplete
			return false
		}
		if unicode.Is(unicode.Han, r) {
			run++
		} else {
			run = 0
		}
		longest = max(longest, run)
	}
	return longest >= 2
}

// records calls do for each record: of a list, of a list in one of the named fields of an object, of lines, or for a file with one
// object. It returns the object's other fields, with the lines on which they begin.
func records(r io.Reader, lists []string, sink Sink, do func(line int, fields map[string]json.RawMessage) error) (map[string]json.RawMessage, error) {
	in, err := begin(r)
	if err != nil {
		return nil, err
	}
	n := 1
	head, err := firstLine(in)
	for ; err == nil && len(bytes.TrimSpace(head)) == 0; n++ {
		head, err = firstLine(in)
	}
	if errors.Is(err, io.EOF) {
		return nil, errors.New("is empty")
	}
	if err != nil {
		return nil, err
	}
	v := &recordVisitor{sink: sink, do: do}
	if first := object(head); first != nil && spelled(first, lists) == "" {
		if err := v.line(n, head); err != nil {
			return nil, err
		}
		return nil, v.lines(in, n+1)
	}
	return newDocument(io.MultiReader(bytes.NewReader(head), in), n, v).read(lists)
}

// firstLine reads a line with its end. A line that is too long may be a whole document; its rest is read later.
func firstLine(in *bufio.Reader) (line []byte, err error) {
	for len(line) <= maxRecordBytes {
		part, err := in.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case errors.Is(err, bufio.ErrBufferFull):
		case errors.Is(err, io.EOF) && len(line) > 0:
			return line, nil
		default:
			return line, err
		}
	}
	return line, nil
}

// object returns the fields of a JSON object, or nil.
func object(data []byte) map[string]json.RawMessage {
	var fields map[string]json.RawMessage
	if json.Unmarshal(data, &fields) != nil {
		return nil
	}
	return fields
}

// recordVisitor passes on records.
type recordVisitor struct {
	sink Sink
	do   func(line int, fields map[string]json.RawMessage) error
}

func (v *recordVisitor) lines(in *bufio.Reader, n int) error {
	for ; ; n++ {
		data, tooLong, err := nextLine(in)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("line %d: %w", n, err)
		case tooLong:
			v.sink.reject(n, "%v", errTooLong)
			continue
		}
		if err := v.line(n, data); err != nil {
			return err
		}
	}
}

// line visits one of many lines. A line with a mistake is skipped.
func (v *recordVisitor) line(n int, data []byte) error {
	if len(bytes.TrimSpace(data)) == 0 {
		return nil
	}
	if problem, whole := encodingProblem(data); whole {
		return fmt.Errorf("line %d: %s", n, problem)
	} else if problem != "" {
		v.sink.reject(n, "%s", problem)
		return nil
	}
	fields := object(data)
	if fields == nil {
		v.sink.reject(n, "is not a JSON object")
		return nil
	}
	return v.do(n, fields)
}

// document is JSON that is not one record per line.
type document struct {
	*recordVisitor
	in      *lineCounter
	decoder *json.Decoder
}

func newDocument(r io.Reader, line int, v *recordVisitor) *document {
	in := &lineCounter{r: r, passed: line - 1}
	return &document{v, in, json.NewDecoder(in)}
}

func (d *document) read(lists []string) (map[string]json.RawMessage, error) {
	about := map[string]json.RawMessage{}
	token, err := d.decoder.Token()
	line := d.in.line(d.decoder.InputOffset() - 1)
	switch {
	case err != nil:
		err = d.broken(err)
	case token == json.Delim('['):
		err = d.list()
	case token == json.Delim('{'):
		var listed bool
		if listed, err = d.object(lists, about); err == nil && !listed {
			err = d.do(line, about)
			about = nil
		}
	default:
		err = fmt.Errorf("line %d: is neither a JSON object nor a list", line)
	}
	if err != nil {
		return nil, err
	}
	d.in.budget = 0
	if _, err := d.decoder.Token(); err == nil {
		return nil, fmt.Errorf("line %d: there is more after the end: write a record a line, or a list", d.in.line(d.decoder.InputOffset()-1))
	} else if !errors.Is(err, io.EOF) {
		return nil, d.broken(err)
	}
	return about, nil
}

// object reads the object's list. The other fields are the header.
func (d *document) object(lists []string, about map[string]json.RawMessage) (listed bool, err error) {
	for d.decoder.More() {
		token, err := d.decoder.Token()
		if err != nil {
			return false, d.broken(err)
		}
		key, _ := token.(string)
		if slices.Contains(lists, key) {
			if token, err = d.decoder.Token(); err != nil {
				return false, d.broken(err)
			}
			if token != json.Delim('[') {
				return false, fmt.Errorf("line %d: %s is not a list", d.in.line(d.decoder.InputOffset()-1), key)
			}
			if err := d.list(); err != nil {
				return false, err
			}
			listed = true
			continue
		}
		var value json.RawMessage
		if err := d.decoder.Decode(&value); err != nil {
			return false, d.broken(err)
		}
		about[key] = value
	}
	_, err = d.decoder.Token()
	return listed, d.broken(err)
}

func (d *document) list() error {
	for d.decoder.More() {
		d.in.budget = 0
		var value json.RawMessage
		if err := d.decoder.Decode(&value); err != nil {
			return d.broken(err)
		}
		if err := d.line(d.in.line(d.decoder.InputOffset()-int64(len(value))), value); err != nil {
			return err
		}
	}
	_, err := d.decoder.Token()
	return d.broken(err)
}

// broken returns the error for invalid JSON, with its place and a likely cause.
func (d *document) broken(err error) error {
	syntax := (*json.SyntaxError)(nil)
	line := d.in.lines()
	switch {
	case err == nil:
		return nil
	case errors.As(err, &syntax):
		line = d.in.line(syntax.Offset - 1)
		if problem, _ := encodingProblem(d.in.last); problem != "" {
			return fmt.Errorf("line %d: %s", line, problem)
		}
		return fmt.Errorf("line %d: is not JSON: %w", line, err)
	case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF):
		return fmt.Errorf("line %d: the file ends before its end: it was cut off", line)
	case errors.Is(err, errTooLong):
		return fmt.Errorf("line %d: a record %w", line, err)
	}
	return err
}

// lineCounter is a reader that maps byte offsets, in increasing order, to lines.
type lineCounter struct {
	r      io.Reader
	at     int64   // number of bytes read
	ends   []int64 // ends of the lines after the last requested offset
	passed int     // number of lines before those
	budget int64   // number of bytes read for the current record
	last   []byte  // the last bytes read
}

// Read implements io.Reader.
func (c *lineCounter) Read(b []byte) (int, error) {
	if c.budget > maxRecordBytes {
		return 0, errTooLong
	}
	n, err := c.r.Read(b[:min(int64(len(b)), maxRecordBytes+1-c.budget)])
	for i, x := range b[:n] {
		if x == '\n' {
			c.ends = append(c.ends, c.at+int64(i))
		}
	}
	c.at += int64(n)
	c.budget += int64(n)
	if n > 0 {
		c.last = append(c.last[:0], b[:min(n, 4<<10)]...)
	}
	return n, err
}

// line returns the line of the byte at an offset, counted from 1.
func (c *lineCounter) line(position int64) int {
	i, _ := slices.BinarySearch(c.ends, position)
	c.ends, c.passed = c.ends[i:], c.passed+i
	return c.passed + 1
}

// lines returns the number of the last line read.
func (c *lineCounter) lines() int { return c.passed + len(c.ends) + 1 }
