// Package jsonapi reads messages of the API that people and programs write as JSON. It accepts all that protojson accepts, and more:
// short names of enum values ("user" for ROLE_USER, in any case), and the names that fields had in the release before (former.go).
// Its errors name the field and say what to write instead.
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

// Request is the name of a message that is a request as a whole. Errors about its fields do not repeat it.
const Request = "request"

// maxProblems is how many wrong fields one error names. The rest of the message is not read.
const maxProblems = 20

// Decode reads a message. The error is a *memory.InvalidError; it calls the message by its name, and its fields by their paths.
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

// undecodable puts an error of protojson into words.
func undecodable(name string, err error) error {
	// The library varies the space after its prefix, so that no program compares its texts.
	problem := strings.TrimLeft(strings.TrimPrefix(err.Error(), "proto:"), " \u00a0")
	return memory.Invalid(name, "cannot be decoded: %s", problem)
}

// rewriter goes through a JSON text along the descriptor of its message. It replaces former and short names, and collects what is wrong.
type rewriter struct {
	text     []byte
	tokens   *json.Decoder
	problems memory.Violations

	rewritten bytes.Buffer
	copied    int64 // how much of the text is in rewritten, as it is or replaced
}

// next returns the next token and where it begins.
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

// message reads a message. A value that is none is left to protojson, as everything is that is neither a wrong name nor a former one.
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

// field reads the value of a field; nil is a field that the message does not have.
func (r *rewriter) field(path string, field protoreflect.FieldDescriptor) error {
	var read func(path string) error
	switch {
	case field == nil || field.IsMap():
		read = r.value
	case field.Enum() != nil:
		read = func(path string) error { return r.enum(path, field.Enum()) }
	case field.Message() != nil && field.Message().FullName().Parent() != "google.protobuf": // which have forms of their own
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

// value passes over a value of any kind.
func (r *rewriter) value(string) error {
	token, _, err := r.next()
	return r.skip(token, err)
}

// errDeep is a value that nests deeper than any value of the API.
var errDeep = errors.New("nested too deep")

// skip passes over the rest of a value that begins with a token.
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

// fieldOf is the field of a name in either form that protojson reads, or nil.
func fieldOf(d protoreflect.MessageDescriptor, key string) protoreflect.FieldDescriptor {
	if field := d.Fields().ByJSONName(key); field != nil {
		return field
	}
	return d.Fields().ByTextName(key)
}

// unknownField says what to write in place of a field that a message does not have.
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

// prefixOf is how all names of an enum's values begin: ROLE_ of Role.
func prefixOf(d protoreflect.EnumDescriptor) string {
	return strings.TrimSuffix(string(d.Values().Get(0).Name()), "UNSPECIFIED")
}

// valueOf is the value of a short or former name, in any case, or nil.
func valueOf(d protoreflect.EnumDescriptor, name string) protoreflect.EnumValueDescriptor {
	short := strings.ToUpper(strings.NewReplacer("-", "_", " ", "_").Replace(strings.TrimSpace(name)))
	for _, prefix := range []string{prefixOf(d), formerPrefixes[d.FullName()]} {
		short = strings.TrimPrefix(short, prefix)
	}
	return d.Values().ByName(protoreflect.Name(prefixOf(d) + short))
}

// shortNames are the names of an enum's values that a request may have.
func shortNames(d protoreflect.EnumDescriptor) []string {
	var names []string
	for i := 1; i < d.Values().Len(); i++ {
		short := strings.TrimPrefix(string(d.Values().Get(i).Name()), prefixOf(d))
		names = append(names, fmt.Sprintf("%q", strings.ToLower(short)))
	}
	return names
}

// join is the path of a field. A key that is no name is quoted.
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

// snake is the form of a field's name that the .proto files have: min_score of minScore.
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
