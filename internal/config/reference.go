package config

import (
	_ "embed"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Key describes one key.
type Key struct {
	Key     string // a part in angle brackets is for the operator to fill in: retrieval.prompts.<language>.header
	Env     string // the environment variable
	Type    string // text, integer, number, boolean, duration, list of …
	Default string // "" is empty
	Allowed string // for example "1 to 100" or "text or json"; "" when Doc says it or nothing is limited
	Doc     string // one sentence, without a capital or a full stop
}

//go:embed keys.yaml
var keysYAML []byte

// keyDocs reads keys.yaml.
func keyDocs() map[string]string {
	docs := map[string]string{}
	if err := yaml.Unmarshal(keysYAML, &docs); err != nil {
		panic(err) // the file is embedded, and a test reads it
	}
	return docs
}

// Reference describes all keys, in the order of Config.
func Reference() []Key {
	docs := keyDocs()
	values := settingsOf(reflect.ValueOf(defaults("")))
	var keys []Key
	for _, l := range schemaOf(reflect.TypeFor[Config]()) {
		k := Key{
			Key: l.key, Env: l.env(), Type: typeName(l.typ), Default: l.tags.Get("default"),
			Allowed: allowedBy(l.tags), Doc: docs[l.key],
		}
		if before, _, isMap := strings.Cut(l.key, "<"); isMap {
			k.Default = "built in for " + strings.Join(entriesOf(values, before), ", ")
		}
		if i := slices.IndexFunc(values, func(s setting) bool { return s.key == l.key }); i >= 0 && k.Default == "" {
			k.Default = yamlNode(values[i].value).Value
		}
		keys = append(keys, k)
	}
	return keys
}

// entriesOf lists the names of a map's entries.
func entriesOf(values []setting, before string) []string {
	var names []string
	for _, s := range values {
		if rest, ok := strings.CutPrefix(s.key, before); ok {
			name, _, _ := strings.Cut(rest, delim)
			names = append(names, name)
		}
	}
	return slices.Compact(names)
}
