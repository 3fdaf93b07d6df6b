package config

import (
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// mask is printed instead of a secret.
const mask = "********"

// fromText converts the text of a variable or flag into the value that a file would hold. Text in another form is returned unchanged,
// and convert reports it.
func fromText(text string, t reflect.Type) any {
	if t.Kind() == reflect.String {
		return text
	}
	text = strings.TrimSpace(text)
	switch {
	case t == reflect.TypeFor[time.Duration]():
	case t.Kind() == reflect.Bool:
		if b, err := strconv.ParseBool(text); err == nil {
			return b
		}
	case isInt(t):
		if n, err := strconv.ParseInt(text, 10, 64); err == nil {
			return n
		}
	case isFloat(t):
		if x, err := strconv.ParseFloat(text, 64); err == nil {
			return x
		}
	case t.Kind() == reflect.Slice && isScalar(t.Elem()):
		list := []any{}
		for item := range strings.SplitSeq(text, ",") {
			if item = strings.TrimSpace(item); item != "" {
				list = append(list, fromText(item, t.Elem()))
			}
		}
		return list
	default:
		var v any
		if err := yaml.Unmarshal([]byte(text), &v); err == nil {
			return v
		}
	}
	return text
}

func isScalar(t reflect.Type) bool {
	return t.Kind() == reflect.String || t.Kind() == reflect.Bool || isInt(t) || isFloat(t)
}

// converter converts the values of a source to the types of the configuration. It is strict: a number is not a text.
type converter struct {
	problems *problems
	source   string
	secret   bool
}

// convert returns the value, or false after it recorded a problem.
func (c converter) convert(key string, raw any, t reflect.Type) (reflect.Value, bool) {
	v := reflect.New(t).Elem()
	var ok bool
	switch {
	case raw == nil:
		c.problems.add(key, c.source, "has no value", "give it one, or remove it")
		return v, false
	case t.Kind() == reflect.Pointer: // a value that may be left out
		e, good := c.convert(key, raw, t.Elem())
		if good {
			v.Set(reflect.New(t.Elem()))
			v.Elem().Set(e)
		}
		return v, good
	case t == reflect.TypeFor[time.Duration]():
		return v, c.duration(key, raw, v)
	case t.Kind() == reflect.String:
		var s string
		if s, ok = raw.(string); ok {
			v.SetString(s)
		}
		if !utf8.ValidString(s) { // gRPC would refuse to send it
			c.problems.add(key, c.source, "is not valid UTF-8", "write it in UTF-8")
			return v, false
		}
	case t.Kind() == reflect.Bool:
		var b bool
		if b, ok = raw.(bool); ok {
			v.SetBool(b)
		}
	case isInt(t):
		ok = setInt(v, raw)
	case isFloat(t):
		ok = setFloat(v, raw)
	case t.Kind() == reflect.Slice:
		if list, isList := raw.([]any); isList {
			return v, c.list(key, list, v)
		}
	case t.Kind() == reflect.Map:
		if m, isMap := raw.(map[string]any); isMap {
			return v, c.mapping(key, m, v)
		}
	case t.Kind() == reflect.Struct:
		if m, isMap := raw.(map[string]any); isMap {
			return v, c.structure(key, m, v)
		}
	}
	if !ok {
		c.problems.add(key, c.source, "is "+c.describe(raw), "use "+typeHint(t))
		return v, false
	}
	if c.secret && raw == mask {
		c.problems.add(key, c.source, "is the mask that stands for a secret in print", "use the secret itself")
		return v, false
	}
	return v, true
}

func (c converter) duration(key string, raw any, v reflect.Value) bool {
	if n, isInt := asInt(raw); isInt && n == 0 {
		return true // the only number whose unit does not matter
	}
	if s, isString := raw.(string); isString {
		if d, err := time.ParseDuration(s); err == nil {
			v.SetInt(int64(d))
			return true
		}
	}
	c.problems.add(key, c.source, "is "+c.describe(raw), "use "+typeHint(v.Type()))
	return false
}

func (c converter) list(key string, raw []any, v reflect.Value) bool {
	v.Set(reflect.MakeSlice(v.Type(), len(raw), len(raw)))
	good := true
	for i, item := range raw {
		e, ok := c.convert(fmt.Sprintf("%s[%d]", key, i), item, v.Type().Elem())
		v.Index(i).Set(e)
		good = good && ok
	}
	return good
}

func (c converter) mapping(key string, raw map[string]any, v reflect.Value) bool {
	v.Set(reflect.MakeMap(v.Type()))
	good := true
	for name, item := range raw {
		e, ok := c.convert(join(key, name), item, v.Type().Elem())
		v.SetMapIndex(reflect.ValueOf(name).Convert(v.Type().Key()), e)
		good = good && ok
	}
	return good
}

func (c converter) structure(key string, raw map[string]any, v reflect.Value) bool {
	fields := map[string]reflect.Value{}
	var known []string
	for f, field := range v.Fields() {
		name := f.Tag.Get(tagKey)
		fields[name] = field
		known = append(known, join(key, name))
	}
	good := true
	for name, item := range raw {
		field, ok := fields[name]
		if !ok {
			c.problems.addUnknown(join(key, name), c.source, "key", known)
			good = false
			continue
		}
		e, ok := c.convert(join(key, name), item, field.Type())
		field.Set(e)
		good = good && ok
	}
	return good
}

func asInt(raw any) (int64, bool) {
	switch n := raw.(type) {
	case int:
		return int64(n), true
	case int64:
		return n, true
	}
	return 0, false
}

func setInt(v reflect.Value, raw any) bool {
	n, ok := asInt(raw)
	if ok = ok && !v.OverflowInt(n); ok {
		v.SetInt(n)
	}
	return ok
}

func setFloat(v reflect.Value, raw any) bool {
	if x, ok := raw.(float64); ok {
		v.SetFloat(x)
		return true
	}
	n, ok := asInt(raw)
	if ok {
		v.SetFloat(float64(n))
	}
	return ok
}

// describe describes a value of a wrong type.
func (c converter) describe(raw any) string {
	const longest = 60
	switch raw := raw.(type) {
	case map[string]any, map[any]any:
		return "a mapping"
	case []any:
		return "a list"
	case string:
		if c.secret {
			return "something else"
		}
		if r := []rune(raw); len(r) > longest {
			raw = string(r[:longest]) + "…"
		}
		return strconv.Quote(raw)
	}
	if c.secret {
		return "something else"
	}
	return fmt.Sprint(raw)
}

// typeHint describes how to write a value of the type.
func typeHint(t reflect.Type) string {
	switch {
	case t == reflect.TypeFor[time.Duration]():
		return "a number with its unit, such as 800ms, 30s, 5m or 168h"
	case t.Kind() == reflect.String:
		return "text, in quotation marks where it looks like something else"
	case t.Kind() == reflect.Bool:
		return "true or false"
	case isInt(t):
		return "a whole number"
	case isFloat(t):
		return "a number"
	case t.Kind() == reflect.Slice:
		return "a list"
	}
	return "a mapping"
}
