package config

import (
	"reflect"
	"slices"
	"strings"
	"time"
)

const (
	tagKey = "koanf"
	delim  = "."
	prefix = "MEMSIDECAR_"
)

// commandVariables are the variables that the command line reads itself.
var commandVariables = []string{
	prefix + "CONFIG", prefix + "ADDR", prefix + "NAMESPACE", prefix + "USER", prefix + "TOKEN", prefix + "TOKEN_FILE",
	prefix + "TLS", prefix + "CA", prefix + "CERT", prefix + "KEY", prefix + "SERVER_NAME",
}

// leaf is a key with a value. In the key of a map's entry, the entry's name is a placeholder in angle brackets.
type leaf struct {
	key  string
	typ  reflect.Type
	tags reflect.StructTag
}

func (l leaf) secret() bool { return l.tags.Get("secret") == "true" }

// env returns the name of the leaf's environment variable.
func (l leaf) env() string { return envName(l.key) }

func envName(key string) string { return prefix + strings.ToUpper(strings.ReplaceAll(key, delim, "_")) }

// schema holds the leaves of a struct, in order.
type schema []leaf

func schemaOf(t reflect.Type) schema { return appendLeaves(nil, t, "") }

func appendLeaves(s schema, t reflect.Type, path string) schema {
	for f := range t.Fields() {
		key := join(path, f.Tag.Get(tagKey))
		switch {
		case f.Type.Kind() == reflect.Struct:
			s = appendLeaves(s, f.Type, key)
		case isSection(f.Type):
			s = appendLeaves(s, f.Type.Elem(), join(key, "<"+f.Tag.Get("each")+">"))
		default:
			s = append(s, leaf{key, f.Type, f.Tag})
		}
	}
	return s
}

// isSection reports whether the type has keys rather than a value.
func isSection(t reflect.Type) bool {
	return t.Kind() == reflect.Struct || t.Kind() == reflect.Map && t.Elem().Kind() == reflect.Struct
}

func join(path, name string) string {
	if path == "" {
		return name
	}
	return path + delim + name
}

// find returns the leaf of a key, or reports that the key is a section.
func (s schema) find(key string) (l leaf, found, section bool) {
	parts := strings.Split(key, delim)
	for _, l := range s {
		pattern := strings.Split(l.key, delim)
		if len(parts) > len(pattern) {
			continue
		}
		if slices.EqualFunc(pattern[:len(parts)], parts, matches) {
			if len(parts) == len(pattern) {
				return l, true, false
			}
			section = true
		}
	}
	return leaf{}, false, section
}

func matches(pattern, part string) bool { return pattern == part || isEntry(pattern) && part != "" }

func isEntry(pattern string) bool { return strings.HasPrefix(pattern, "<") }

// findEnv returns the leaf of an environment variable and the key that it sets.
func (s schema) findEnv(name string) (l leaf, key string, found bool) {
	for _, l := range s {
		before, rest, isMap := strings.Cut(l.env(), "<")
		if !isMap {
			if name == before {
				return l, l.key, true
			}
			continue
		}
		_, after, _ := strings.Cut(rest, ">")
		entry, ok := strings.CutPrefix(name, before)
		if !ok {
			continue
		}
		if entry, ok = strings.CutSuffix(entry, after); ok && entry != "" {
			head, tail, _ := strings.Cut(l.key, "<")
			_, tail, _ = strings.Cut(tail, ">")
			return l, head + strings.ToLower(entry) + tail, true
		}
	}
	return leaf{}, "", false
}

// setting is a leaf with its value.
type setting struct {
	key   string
	tags  reflect.StructTag
	value reflect.Value
}

// settingsOf lists the settings of a struct in order; entries of maps are sorted by name.
func settingsOf(v reflect.Value) []setting { return appendSettings(nil, v, "") }

func appendSettings(s []setting, v reflect.Value, path string) []setting {
	for f, field := range v.Fields() {
		key := join(path, f.Tag.Get(tagKey))
		switch {
		case f.Type.Kind() == reflect.Struct:
			s = appendSettings(s, field, key)
		case isSection(f.Type):
			for _, name := range sortedKeys(field) {
				s = appendSettings(s, field.MapIndex(name), join(key, name.String()))
			}
		default:
			s = append(s, setting{key, f.Tag, field})
		}
	}
	return s
}

func sortedKeys(m reflect.Value) []reflect.Value {
	return slices.SortedFunc(slices.Values(m.MapKeys()), func(a, b reflect.Value) int {
		return strings.Compare(a.String(), b.String())
	})
}

// typeName returns the name of a type for operators.
func typeName(t reflect.Type) string {
	switch {
	case t == reflect.TypeFor[time.Duration]():
		return "duration"
	case t.Kind() == reflect.String:
		return "text"
	case t.Kind() == reflect.Bool:
		return "boolean"
	case isInt(t):
		return "integer"
	case isFloat(t):
		return "number"
	case t.Kind() == reflect.Slice:
		return "list of " + typeName(t.Elem())
	}
	return "mapping"
}

func isInt(t reflect.Type) bool { return t.Kind() >= reflect.Int && t.Kind() <= reflect.Int64 }

func isFloat(t reflect.Type) bool { return t.Kind() == reflect.Float32 || t.Kind() == reflect.Float64 }
