// Package jsonapi decodes API messages from JSON that people and programs write. It accepts everything that protojson accepts, and also
// short names of enum values ("user" for ROLE_USER, in any case) and former field names (former.go). Its errors name the field and say what
// to write instead.
package jsonapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/memsidecar/memsidecar/internal/memory"
)

// Request is the message name for a whole request. Errors about its fields omit the name.
const Request = "request"

// maxProblems is how many invalid fields one error names. The rest of the message is not checked.
const maxProblems = 20

// Decode decodes a message. The error is a *memory.InvalidError that uses the given name of the message and the paths of its fields.
func Decode(name string, text []byte, message proto.Message) error {
	if protojson.Unmarshal(text, message) == nil {
		return nil
	}
	path := name
	if name == Request {
		path = ""
	}
	r := &rewriter{text: text, tokens: json.NewDecoder(bytes.NewReader(text))}
	broken := r.message(path, message.ProtoReflect().Descriptor())
	if err := r.problems.Err(); err != nil && broken == nil {
		return err
	}
	r.rewritten.Write(text[r.copied:])
	if err := protojson.Unmarshal(r.rewritten.Bytes(), message); err != nil {
		return undecodable(name, err)
	}
	return nil
}

// undecodable converts an error of protojson.
func undecodable(name string, err error) error {
	// The library varies the space after its prefix, to keep programs from comparing its texts.
	problem := strings.TrimLeft(strings.TrimPrefix(err.Error(), "proto:"), " \u00a0")
	return memory.Invalid(name, "cannot be decoded: %s", problem)
}

// rewriter walks a JSON text along the descriptor of its message. It replaces former and short names, and collects problems.
type rewriter struct {
	text     []byte
	tokens   *json.Decoder
	problems memory.Violations

	rewritten bytes.Buffer
	copied    int64 // how much of the text has been copied or replaced
}

// next returns the next token and its position.
func (r *rewriter) next() (token json.Token, start int64, err error) {
	start = r.tokens.InputOffset()
	for start < int64(len(r.text)) && strings.IndexByte(" \t\r\n,:", r.text[start]) >= 0 {
		start++
	}
	token, err = r.tokens.Token()
	return token, start, err
}

// replace replaces the token that was returned last.
func (r *rewriter) replace(start int64, replacement string) {
	r.rewritten.Write(r.text[r.copied:start])
	fmt.Fprintf(&r.rewritten, "%q", replacement)
	r.copied = r.tokens.InputOffset()
}

// message reads a message. Values of another type, like all other errors that are not about names, are left to protojson.
func (r *rewriter) message(path string, d protoreflect.MessageDescriptor) error {
	token, _, err := r.next()
	if err != nil || token != json.Delim('{') {
		return r.skip(token, err)
	}
	for r.tokens.More() && len(r.problems) < maxProblems {
		token, start, err := r.next()
		key, ok := token.(string)
		if err != nil || !ok {
			return r.skip(token, err)
		}
		field := fieldOf(d, key)
		if now := formerFields[d.FullName()][snake(key)]; field == nil && now != "" {
			field = d.Fields().ByName(now)
			r.replace(start, string(now))
		}
		if field == nil {
			r.problems.Add(join(path, key), "%s", unknownField(d, key))
		}
		if err := r.field(join(path, key), field); err != nil {
			return err
		}
	}
	if len(r.problems) >= maxProblems {
		return nil
	}
	_, _, err = r.next()
	return err
}

// field reads the value of a field; field is nil if the message has no such field.
func (r *rewriter) field(path string, field protoreflect.FieldDescriptor) error {
	var read func(path string) error
	switch {
	case field == nil || field.IsMap():
		read = r.value
	case field.Enum() != nil:
		read = func(path string) error { return r.enum(path, field.Enum()) }
	case field.Message() != nil && field.Message().FullName().Parent() != "google.protobuf": // those have JSON forms of their own
		read = func(path string) error { return r.message(path, field.Message()) }
	default:
		read = r.value
	}
	if field == nil || !field.IsList() {
		return read(path)
	}
	token, _, err := r.next()
	if err != nil || token != json.Delim('[') {
		return r.skip(token, err)
	}
	for i := 0; r.tokens.More() && len(r.problems) < maxProblems; i++ {
		if err := read(fmt.Sprintf("%s[%d]", path, i)); err != nil {
			return err
		}
	}
	if len(r.problems) >= maxProblems {
		return nil
	}
	_, _, err = r.next()
	return err
}

// enum reads the value of an enum.
func (r *rewriter) enum(path string, d protoreflect.EnumDescriptor) error {
	token, start, err := r.next()
	name, ok := token.(string)
	if err != nil || !ok {
		return r.skip(token, err)
	}
	if d.Values().ByName(protoreflect.Name(name)) != nil {
		return nil
	}
	if value := valueOf(d, name); value != nil {
		r.replace(start, string(value.Name()))
		return nil
	}
	r.problems.Add(path, "is %.60q: use %s", name, strings.Join(shortNames(d), ", "))
	return nil
}

// value skips a value of any kind.
func (r *rewriter) value(string) error {
	token, _, err := r.next()
	return r.skip(token, err)
}

// errDeep means that a value is nested deeper than any value of the API.
var errDeep = errors.New("nested too deeply")

// skip skips the rest of a value that begins with token.
func (r *rewriter) skip(token json.Token, err error) error {
	for depth := 0; err == nil; token, _, err = r.next() {
		if depth > 100 {
			return errDeep
		}
		switch token {
		case json.Delim('{'), json.Delim('['):
			depth++
		case json.Delim('}'), json.Delim(']'):
			depth--
		}
		if depth <= 0 {
			return nil
		}
	}
	return err
}

// fieldOf returns the field with a name in either form that protojson accepts, or nil.
func fieldOf(d protoreflect.MessageDescriptor, key string) protoreflect.FieldDescriptor {
	if field := d.Fields().ByJSONName(key); field != nil {
		return field
	}
	return d.Fields().ByTextName(key)
}

// unknownField returns what to write in place of an unknown field.
func unknownField(d protoreflect.MessageDescriptor, key string) string {
	if scope := d.Fields().ByName("scope"); scope != nil && scope.Message() != nil && fieldOf(scope.Message(), key) != nil {
		return fmt.Sprintf(`is a field of the scope: write "scope": {%q: …}`, key)
	}
	var names []string
	for i := range d.Fields().Len() {
		names = append(names, string(d.Fields().Get(i).Name()))
	}
	if len(names) == 0 {
		return fmt.Sprintf("is an unknown field: %s has no fields", d.Name())
	}
	return fmt.Sprintf("is an unknown field: %s has %s", d.Name(), strings.Join(names, ", "))
}

// prefixOf returns the common prefix of an enum's value names: ROLE_ for Role.
func prefixOf(d protoreflect.EnumDescriptor) string {
	return strings.TrimSuffix(string(d.Values().Get(0).Name()), "UNSPECIFIED")
}

// valueOf returns the enum value of a short or former name, in any case, or nil.
func valueOf(d protoreflect.EnumDescriptor, name string) protoreflect.EnumValueDescriptor {
	short := strings.ToUpper(strings.NewReplacer("-", "_", " ", "_").Replace(strings.TrimSpace(name)))
	for _, prefix := range []string{prefixOf(d), formerPrefixes[d.FullName()]} {
		short = strings.TrimPrefix(short, prefix)
	}
	return d.Values().ByName(protoreflect.Name(prefixOf(d) + short))
}

// shortNames returns the short names of the enum values that a request may have.
func shortNames(d protoreflect.EnumDescriptor) []string {
	var names []string
	for i := 1; i < d.Values().Len(); i++ {
		short := strings.TrimPrefix(string(d.Values().Get(i).Name()), prefixOf(d))
		names = append(names, fmt.Sprintf("%q", strings.ToLower(short)))
	}
	return names
}

// join appends a key to a path. A key that is not an identifier is quoted.
func join(path, key string) string {
	if len(key) > 60 || strings.ContainsFunc(key, func(r rune) bool {
		return r != '_' && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9')
	}) {
		key = fmt.Sprintf("%.60q", key)
	}
	if path == "" {
		return key
	}
	return path + "." + key
}

// snake returns a field name as in the .proto files: min_score for minScore.
func snake(key string) protoreflect.Name {
	if !slices.ContainsFunc([]byte(key), func(c byte) bool { return 'A' <= c && c <= 'Z' }) {
		return protoreflect.Name(key)
	}
	var b strings.Builder
	for _, c := range []byte(key) {
		if 'A' <= c && c <= 'Z' {
			b.WriteByte('_')
			c += 'a' - 'A'
		}
		b.WriteByte(c)
	}
	return protoreflect.Name(b.String())
}
