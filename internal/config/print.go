package config

import (
	"fmt"
	"io"
	"reflect"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"
)

// WriteYAML writes every key with its value and, as a comment, the value's origin. Reading the output gives the same configuration,
// except for secrets.
func (l *Loaded) WriteYAML(w io.Writer) error { return writeYAML(w, l.Config, l.origins) }

func writeYAML(w io.Writer, config any, from origins) error {
	root := &yaml.Node{Kind: yaml.MappingNode}
	for _, s := range settingsOf(reflect.ValueOf(config)) {
		value := yamlNode(s.value)
		if s.tags.Get("secret") == "true" && !s.value.IsZero() {
			value = yamlNode(reflect.ValueOf(mask))
		}
		parts := strings.Split(s.key, delim)
		section := root
		for _, part := range parts[:len(parts)-1] {
			section = below(section, part)
		}
		name := yamlNode(reflect.ValueOf(parts[len(parts)-1]))
		if len(value.Content) > 0 {
			name.LineComment = from.of(s.key)
		} else {
			value.LineComment = from.of(s.key)
		}
		section.Content = append(section.Content, name, value)
	}
	e := yaml.NewEncoder(w)
	e.SetIndent(2)
	if err := e.Encode(root); err != nil {
		return fmt.Errorf("print the configuration: %w", err)
	}
	return e.Close()
}

// below returns the section with the name. It must be the last section; otherwise a new one is added.
func below(section *yaml.Node, name string) *yaml.Node {
	if n := len(section.Content); n > 0 && section.Content[n-2].Value == name {
		return section.Content[n-1]
	}
	s := &yaml.Node{Kind: yaml.MappingNode}
	section.Content = append(section.Content, yamlNode(reflect.ValueOf(name)), s)
	return s
}

// yamlNode returns a value as YAML. Zero fields of structs are omitted: such structs are items of lists, which have no defaults.
func yamlNode(v reflect.Value) *yaml.Node {
	n := &yaml.Node{}
	add := func(name string, v reflect.Value) {
		n.Content = append(n.Content, yamlNode(reflect.ValueOf(name)), yamlNode(v))
	}
	switch {
	case v.Kind() == reflect.Pointer: // set, or structures leave it out
		return yamlNode(v.Elem())
	case v.Type() == reflect.TypeFor[time.Duration]():
		n.SetString(durationText(time.Duration(v.Int())))
	case v.Kind() == reflect.Slice:
		n.Kind = yaml.SequenceNode
		for _, item := range v.Seq2() {
			n.Content = append(n.Content, yamlNode(item))
		}
		if len(n.Content) == 0 {
			n.Style = yaml.FlowStyle
		}
	case v.Kind() == reflect.Map:
		n.Kind = yaml.MappingNode
		for _, name := range sortedKeys(v) {
			add(name.String(), v.MapIndex(name))
		}
	case v.Kind() == reflect.Struct:
		n.Kind = yaml.MappingNode
		for f, field := range v.Fields() {
			if !field.IsZero() {
				add(f.Tag.Get(tagKey), field)
			}
		}
	case v.Kind() == reflect.String:
		if err := n.Encode(v.String()); err != nil || strings.Contains(v.String(), "\n") {
			n.SetString(v.String())
			n.Style = yaml.DoubleQuotedStyle // a comment finds no place beside a block
		}
	default:
		if err := n.Encode(v.Interface()); err != nil {
			n.SetString(fmt.Sprint(v))
		}
	}
	return n
}

// durationText writes a duration without units that are zero.
func durationText(d time.Duration) string {
	text := d.String()
	for _, zero := range []string{"m0s", "h0m"} {
		if strings.HasSuffix(text, zero) {
			text = text[:len(text)-2]
		}
	}
	return text
}
