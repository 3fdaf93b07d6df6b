package sqldb

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/memsidecar/memsidecar/internal/memory"
)

// Skip reports whether an error is about one row that cannot be decoded, which lists and searches omit. It is logged.
func Skip(q Querier, err error) bool {
	row := (*memory.DamagedError)(nil)
	if !errors.As(err, &row) {
		return false
	}
	q.NoteDamage(row)
	return true
}

// DecodeJSON decodes a column of JSON. If it is not valid JSON or UTF-8, the error is a *memory.DamagedError about the row.
func DecodeJSON(table string, id any, text []byte, into any) error {
	if !utf8.Valid(text) {
		return Damaged(table, id, "it is not UTF-8")
	}
	if err := json.Unmarshal(text, into); err != nil {
		return Damaged(table, id, "it holds broken JSON") // the error may quote the text
	}
	return nil
}

// Texts is a *memory.DamagedError when one of a row's texts is not UTF-8, because no answer can hold it.
func Texts(table string, id any, texts ...string) error {
	for _, text := range texts {
		if !utf8.ValidString(text) {
			return Damaged(table, id, "it is not UTF-8")
		}
	}
	return nil
}

// Numbers is a *memory.DamagedError when one of a row's numbers is not between two others.
func Numbers(table string, id any, least, most float64, numbers ...float64) error {
	for _, n := range numbers {
		if !(n >= least && n <= most) { // what is no number is not between them either
			return Damaged(table, id, "it has an impossible number")
		}
	}
	return nil
}

// Times is a *memory.DamagedError when an answer could not hold one of a row's times.
func Times(table string, id any, times ...time.Time) error {
	for _, t := range times {
		if year := t.Year(); year < 1 || year > 9999 {
			return Damaged(table, id, "it has an impossible time")
		}
	}
	return nil
}

// Scanned turns the failure to scan a value of another type than its column has into a *memory.DamagedError.
func Scanned(table string, id any, err error) error {
	if err != nil && strings.HasPrefix(err.Error(), "sql: Scan error on column") {
		return Damaged(table, id, "it holds a value of another type") // the error quotes the value
	}
	return err
}

// Damaged is the error about a row that cannot be decoded.
func Damaged(table string, id any, problem string) error {
	return &memory.DamagedError{Table: table, ID: strings.ToValidUTF8(fmt.Sprint(id), "\uFFFD"), Problem: problem}
}

// DecodeVector decodes a vector of so many dimensions, or says what is wrong with it.
func DecodeVector(b []byte, dimensions int) (vector []float32, problem string) {
	if len(b) != 4*dimensions {
		return nil, fmt.Sprintf("has %d bytes, not %d", len(b), 4*dimensions)
	}
	vector = make([]float32, dimensions)
	for i := range vector {
		vector[i] = math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
		if math.IsNaN(float64(vector[i])) || math.IsInf(float64(vector[i]), 0) {
			return nil, "has an impossible number"
		}
	}
	return vector, ""
}
