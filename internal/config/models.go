package config

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/memsidecar/memsidecar/internal/provider"
)

// auto is the provider that leaves the choice to the sidecar.
const auto = "auto"

// modelKeys is a section that names a model, with the keys provider and model. Of the tags of its provider, "embedded" names the
// provider that needs no model, and "follows" the section whose model auto uses.
type modelKeys struct {
	part, embedded, follows string

	provider, model string
	others          [][2]string // the keys that describe a model, and their values
}

// describing are the keys that only a provider's model uses.
var describing = []string{"endpoint", "api_key", "api_key_file"}

// modelsOf returns the sections that name a model.
func modelsOf(c Config) []modelKeys {
	var list []modelKeys
	v := reflect.ValueOf(c)
	for field := range v.Type().Fields() {
		section := v.FieldByIndex(field.Index)
		if section.Kind() != reflect.Struct {
			continue
		}
		m := modelKeys{part: field.Tag.Get(tagKey)}
		values := map[string]string{}
		for key := range section.Type().Fields() {
			if value := section.FieldByIndex(key.Index); value.Kind() == reflect.String {
				values[key.Tag.Get(tagKey)] = value.String()
			}
			if key.Tag.Get(tagKey) == "provider" {
				m.embedded, m.follows = key.Tag.Get("embedded"), key.Tag.Get("follows")
			}
		}
		if m.embedded == "" {
			continue
		}
		m.provider, m.model = values["provider"], values["model"]
		for _, key := range describing {
			m.others = append(m.others, [2]string{key, values[key]})
		}
		list = append(list, m)
	}
	return list
}

// checkModels reports settings of models that would be ignored and those that name no model. Whether the provider has an API key is
// checked when the sidecar starts, because other commands do not need it.
func checkModels(c Config, check func(key, problem, fix string)) {
	for _, m := range modelsOf(c) {
		named := strings.Contains(m.model, "/")
		own := m.part + ".provider"
		switch {
		case m.provider == m.embedded, m.part == "decision" && m.provider == "none":
			if m.model != "" { // an endpoint and a key may stay: who switches a model off for a while keeps them
				check(m.part+".model", fmt.Sprintf("is set, and %s %s uses no model", own, m.provider), "remove it, or set "+own)
			}
			continue
		case m.provider == auto && m.model != "" && !named:
			check(m.part+".model", fmt.Sprintf("is %q, which %s auto does not use", m.model, own), "write provider/model, or set "+own)
			continue
		case m.provider == auto && !named:
			for _, other := range m.others {
				if m.follows != "" && other[1] != "" {
					check(m.part+"."+other[0], fmt.Sprintf("is set, and %s auto takes the model of %s", own, m.follows),
						"remove it, or name a model as "+m.part+".model: provider/model")
				}
			}
			continue
		}
		m.resolve(check)
	}
}

// resolve reports a provider, model or endpoint that names no model.
func (m *modelKeys) resolve(check func(key, problem, fix string)) {
	usual := func(p provider.Provider) string { return p.TextModel }
	if m.part == "embedding" {
		usual = func(p provider.Provider) string { return p.EmbeddingModel }
	}
	name := m.provider
	if name == auto {
		name = ""
	}
	if _, err := provider.Resolve(name, m.model, m.others[0][1], usual); err != nil {
		key, text, _ := strings.Cut(err.Error(), " ")
		problem, fix, ok := strings.Cut(text, ": ")
		if !ok {
			fix = "correct it"
		}
		check(m.part+"."+key, problem, fix)
	}
}
