// Command apidoc is a plugin of protoc that writes the API reference, api.md, from the comments in the proto files. make
// generate runs it.
package main

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"google.golang.org/protobuf/compiler/protogen"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/pluginpb"
)

func main() {
	protogen.Options{}.Run(func(plugin *protogen.Plugin) error {
		plugin.SupportedFeatures = uint64(pluginpb.CodeGeneratorResponse_FEATURE_PROTO3_OPTIONAL)
		var files []*protogen.File
		for _, f := range plugin.Files {
			if f.Generate {
				files = append(files, f)
			}
		}
		r := &reference{out: plugin.NewGeneratedFile("api.md", ""), local: map[protoreflect.FullName]bool{}}
		r.write(files)
		return nil
	})
}

// reference is the page that is being written.
type reference struct {
	out   *protogen.GeneratedFile
	local map[protoreflect.FullName]bool // messages and enums that have a section
}

const introduction = `# API reference

<!-- Generated from the comments in proto/memsidecar/v1 by make generate; edit those. -->

All calls of the package %[1]s, by service, and below them all [messages and enums](#messages). The files:
[proto/memsidecar/v1](../proto/memsidecar/v1). Why the API is as it is: [design/api.md](design/api.md). What an error means and
what to do about it: [troubleshooting.md](troubleshooting.md).
`

func (r *reference) write(files []*protogen.File) {
	var services []*protogen.Service
	var messages []*protogen.Message
	var enums []*protogen.Enum
	for _, f := range files {
		services = append(services, f.Services...)
		enums = append(enums, f.Enums...)
		for _, m := range f.Messages {
			messages, enums = collect(m, messages, enums)
		}
	}
	// The service of the two calls that every bot makes comes first.
	slices.SortStableFunc(services, func(a, b *protogen.Service) int {
		return cmp.Or(
			-cmp.Compare(strings.Count(string(a.Desc.Name()), "Memory"), strings.Count(string(b.Desc.Name()), "Memory")),
			cmp.Compare(a.Desc.Name(), b.Desc.Name()),
		)
	})
	slices.SortFunc(messages, func(a, b *protogen.Message) int { return cmp.Compare(name(a.Desc), name(b.Desc)) })
	slices.SortFunc(enums, func(a, b *protogen.Enum) int { return cmp.Compare(name(a.Desc), name(b.Desc)) })
	for _, m := range messages {
		r.local[m.Desc.FullName()] = true
	}
	for _, e := range enums {
		r.local[e.Desc.FullName()] = true
	}
	r.p(introduction, files[0].Desc.Package())
	for _, s := range services {
		r.service(s)
	}
	r.p("## Messages\n")
	for _, m := range messages {
		r.message(m)
	}
	r.p("## Enums\n")
	for _, e := range enums {
		r.enum(e)
	}
}

// collect adds a message and what is declared inside it.
func collect(m *protogen.Message, messages []*protogen.Message, enums []*protogen.Enum) ([]*protogen.Message, []*protogen.Enum) {
	if m.Desc.IsMapEntry() {
		return messages, enums
	}
	messages, enums = append(messages, m), append(enums, m.Enums...)
	for _, inner := range m.Messages {
		messages, enums = collect(inner, messages, enums)
	}
	return messages, enums
}

func (r *reference) service(s *protogen.Service) {
	r.p("## %s\n", s.Desc.Name())
	r.p("%s\n", text(s.Comments.Leading))
	r.p("| call | takes | answers | |\n|---|---|---|---|")
	for _, m := range s.Methods {
		r.p(
			"| `%s` | %s | %s | %s |",
			m.Desc.Name(),
			r.streamed(m.Desc.IsStreamingClient(), m.Input.Desc),
			r.streamed(m.Desc.IsStreamingServer(), m.Output.Desc),
			cell(m.Comments.Leading),
		)
	}
	r.p("")
}

func (r *reference) message(m *protogen.Message) {
	r.p("### %s\n", name(m.Desc))
	if t := text(m.Comments.Leading); t != "" {
		r.p("%s\n", t)
	}
	if len(m.Fields) == 0 {
		r.p("It has no fields.\n")
		return
	}
	r.p("| field | type | |\n|---|---|---|")
	for _, f := range m.Fields {
		comment := cell(f.Comments.Leading)
		if f.Oneof != nil && !f.Oneof.Desc.IsSynthetic() {
			comment = strings.TrimSpace(fmt.Sprintf("One of `%s`. %s", f.Oneof.Desc.Name(), comment))
		}
		r.p("| `%s` | %s | %s |", f.Desc.Name(), r.fieldType(f.Desc), comment)
	}
	r.p("")
}

func (r *reference) enum(e *protogen.Enum) {
	r.p("### %s\n", name(e.Desc))
	if t := text(e.Comments.Leading); t != "" {
		r.p("%s\n", t)
	}
	r.p("| value | | |\n|---|---|---|")
	for _, v := range e.Values {
		r.p("| `%s` | %d | %s |", v.Desc.Name(), v.Desc.Number(), cell(v.Comments.Leading))
	}
	r.p("")
}

func (r *reference) streamed(stream bool, d protoreflect.Descriptor) string {
	if stream {
		return "a stream of " + r.link(d)
	}
	return r.link(d)
}

func (r *reference) fieldType(f protoreflect.FieldDescriptor) string {
	switch {
	case f.IsMap():
		return "map of " + r.scalar(f.MapKey()) + " to " + r.scalar(f.MapValue())
	case f.IsList():
		return "list of " + r.scalar(f)
	case f.HasOptionalKeyword():
		return "optional " + r.scalar(f)
	}
	return r.scalar(f)
}

func (r *reference) scalar(f protoreflect.FieldDescriptor) string {
	switch {
	case f.Message() != nil:
		return r.link(f.Message())
	case f.Enum() != nil:
		return r.link(f.Enum())
	}
	return f.Kind().String()
}

// link leads to the section of a message or an enum of this API.
func (r *reference) link(d protoreflect.Descriptor) string {
	if !r.local[d.FullName()] {
		return string(d.FullName())
	}
	return fmt.Sprintf("[%s](#%s)", name(d), strings.ToLower(strings.ReplaceAll(name(d), ".", "")))
}

// name is what comes after the package.
func name(d protoreflect.Descriptor) string {
	return strings.TrimPrefix(string(d.FullName()), string(d.ParentFile().Package())+".")
}

// Placeholders such as <id> are not HTML.
var angle = strings.NewReplacer("<", "&lt;", ">", "&gt;")

var code = regexp.MustCompile("`[^`]*`")

// text is a comment as Markdown.
func text(c protogen.Comments) string {
	var lines []string
	for line := range strings.Lines(string(c)) {
		lines = append(lines, strings.TrimPrefix(strings.TrimRight(line, " \n"), " "))
	}
	return escaped(strings.TrimSpace(strings.Join(lines, "\n")))
}

// cell is a comment inside a table.
func cell(c protogen.Comments) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(text(c)), " "), "|", `\|`)
}

// escaped leaves what is code as it is.
func escaped(s string) string {
	var b strings.Builder
	last := 0
	for _, at := range code.FindAllStringIndex(s, -1) {
		b.WriteString(angle.Replace(s[last:at[0]]) + s[at[0]:at[1]])
		last = at[1]
	}
	return b.String() + angle.Replace(s[last:])
}

func (r *reference) p(format string, args ...any) { r.out.P(fmt.Sprintf(format, args...)) }
