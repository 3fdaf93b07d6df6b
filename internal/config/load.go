package config

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"reflect"
	"regexp"
	"runtime"
	"slices"
	"strings"

	"github.com/knadh/koanf/parsers/yaml"
	"github.com/knadh/koanf/providers/confmap"
	"github.com/knadh/koanf/providers/env/v2"
	"github.com/knadh/koanf/providers/file"
	"github.com/knadh/koanf/providers/structs"
	"github.com/knadh/koanf/v2"
	yamlv3 "go.yaml.in/yaml/v3"
)

// Origins of values other than a file's path or a variable's name.
const (
	fromDefault = "default"
	fromFlag    = "--set"
)

// Sources are the sources of values. A later field overrides an earlier one.
type Sources struct {
	// File is the path of a YAML file, which must exist; "" reads none.
	File string
	// Environ is the environment as os.Environ returns it. Its MEMSIDECAR_* variables are used, except empty ones and those that the
	// command line reads itself (MEMSIDECAR_CONFIG, _ADDR, _TOKEN and others). A variable that names no key is an error.
	Environ []string
	// Flags are values by key.
	Flags map[string]string
}

// Loaded is a valid configuration with the origin of each value.
type Loaded struct {
	Config  Config
	origins origins
}

// Load reads the sources. It reports all problems in one *InvalidError.
func Load(sources Sources) (*Loaded, error) {
	base := defaults(dataDir(runtime.GOOS, sources.Environ))
	var bad problems
	c, from, err := load(base, sources, &bad)
	if err != nil {
		return nil, err
	}
	validate(c, from, &bad)
	if err := bad.err(); err != nil {
		return nil, err
	}
	return &Loaded{c, from}, nil
}

// origins maps a key to the origin of its value, if that is not the default.
type origins map[string]string

// of returns the origin of a key, of the first key in a section, or of the section that contains the key.
func (o origins) of(key string) string {
	for _, set := range slices.Sorted(maps.Keys(o)) {
		if within(set, key) || within(key, set) {
			return o[set]
		}
	}
	return fromDefault
}

// within reports whether a key equals another or is part of it.
func within(key, of string) bool {
	rest, ok := strings.CutPrefix(key, of)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}

// layer holds the checked values of one source.
type layer struct {
	schema   schema
	values   map[string]any // of the types of the configuration, by key
	origins  origins
	problems *problems
}

// load applies the sources to the defaults. A wrong value is reported and not applied.
func load[T any](defaults T, sources Sources, bad *problems) (T, origins, error) {
	s := schemaOf(reflect.TypeFor[T]())
	from := origins{}
	merged := koanf.New(delim)
	var out T
	err := merged.Load(structs.Provider(defaults, tagKey), nil)
	for _, read := range []func(*layer, Sources){(*layer).readFile, (*layer).readEnviron, (*layer).readFlags} {
		l := &layer{s, map[string]any{}, from, bad}
		read(l, sources)
		err = errors.Join(err, merged.Load(confmap.Provider(l.values, delim), nil))
	}
	err = errors.Join(err, merged.Unmarshal("", &out))
	return out, from, err
}

// oneDocument is a parser that refuses a file with several YAML documents instead of ignoring all but the first.
type oneDocument struct{ *yaml.YAML }

// Unmarshal implements koanf.Parser.
func (p oneDocument) Unmarshal(b []byte) (map[string]any, error) {
	d := yamlv3.NewDecoder(bytes.NewReader(b))
	var n yamlv3.Node
	if err := d.Decode(&n); err == nil && !errors.Is(d.Decode(&n), io.EOF) {
		return nil, fmt.Errorf("yaml: more than one document")
	}
	return p.YAML.Unmarshal(b)
}

func (l *layer) readFile(sources Sources) {
	path := sources.File
	if path == "" {
		return
	}
	k := koanf.New(delim)
	if err := k.Load(file.Provider(path), oneDocument{yaml.Parser()}); err != nil {
		problem, fix := "cannot be used: "+strings.Join(strings.Fields(err.Error()), " "), "correct the file"
		if errors.Is(err, fs.ErrNotExist) {
			problem, fix = "does not exist", "create it, or name another"
		} else if pathErr := (*fs.PathError)(nil); errors.As(err, &pathErr) {
			fix = "make it readable, or name another"
		}
		l.problems.add("file", path, problem, fix)
		return
	}
	l.section("", k.Raw(), path)
}

// section reads the values of a mapping in the file.
func (l *layer) section(path string, values map[string]any, source string) {
	for _, name := range slices.Sorted(maps.Keys(values)) {
		key := join(path, name)
		if strings.Contains(name, delim) {
			l.problems.add(key, source, "is a key with a dot", "write "+strings.ReplaceAll(name, delim, ": { ")+
				": …"+strings.Repeat(" }", strings.Count(name, delim)))
			continue
		}
		leaf, found, section := l.schema.find(key)
		value := values[name]
		switch below, isMap := value.(map[string]any); {
		case found:
			l.set(leaf, key, value, source)
		case section && isMap:
			l.section(key, below, source)
		case section && value != nil: // nothing below it: all of it may be commented out
			l.problems.add(key, source, "is "+converter{}.describe(value), "use a mapping")
		case !section:
			l.problems.addUnknown(key, source, "key", l.keys())
		}
	}
}

func (l *layer) readEnviron(sources Sources) {
	vars, err := env.Provider("", env.Opt{Prefix: prefix, EnvironFunc: func() []string { return sources.Environ }}).Read()
	if err != nil {
		l.problems.add("environment", "environment", err.Error(), "correct it")
	}
	for _, name := range slices.Sorted(maps.Keys(vars)) {
		text, _ := vars[name].(string)
		leaf, key, found := l.schema.findEnv(name)
		switch {
		case found && text != "":
			l.set(leaf, key, fromText(text, leaf.typ), name)
		case !found && !slices.Contains(commandVariables, name) && !fromKubernetes(name, text):
			l.problems.addUnknown(name, "environment", "variable", l.variables())
		}
	}
}

// fromKubernetes reports whether Kubernetes set the variable: it describes each service to every container, also one whose name begins
// with "memsidecar".
// https://kubernetes.io/docs/concepts/services-networking/service/#environment-variables
func fromKubernetes(name, value string) bool {
	const about = `^MEMSIDECAR(_[A-Z0-9_]+)?_(SERVICE_HOST|SERVICE_PORT(_[A-Z0-9_]+)?|PORT_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)$`
	return regexp.MustCompile(about).MatchString(name) ||
		strings.HasSuffix(name, "_PORT") && strings.Contains(value, "://")
}

func (l *layer) readFlags(sources Sources) {
	for _, key := range slices.Sorted(maps.Keys(sources.Flags)) {
		leaf, found, section := l.schema.find(key)
		switch {
		case found:
			l.set(leaf, key, fromText(sources.Flags[key], leaf.typ), fromFlag)
		case section:
			l.problems.add(key, fromFlag, "has no value of its own", "set a key below it")
		default:
			l.problems.addUnknown(key, fromFlag, "key", l.keys())
		}
	}
}

// set stores a value, unless it is wrong.
func (l *layer) set(leaf leaf, key string, raw any, source string) {
	c := converter{l.problems, source, leaf.secret()}
	v, ok := c.convert(key, raw, leaf.typ)
	if !ok {
		return
	}
	if fix := outside(v, leaf.tags); fix != "" {
		l.problems.add(key, source, "is "+c.describe(raw), fix)
		return
	}
	l.values[key] = v.Interface()
	l.origins[key] = source
}

// keys lists the keys and the sections.
func (l *layer) keys() []string {
	var keys []string
	for _, leaf := range l.schema {
		for i := range leaf.key {
			if section := leaf.key[:i]; leaf.key[i] == '.' && !slices.Contains(keys, section) {
				keys = append(keys, section)
			}
		}
		keys = append(keys, leaf.key)
	}
	return keys
}

func (l *layer) variables() []string {
	names := make([]string, len(l.schema))
	for i, leaf := range l.schema {
		names[i] = leaf.env()
	}
	return names
}
