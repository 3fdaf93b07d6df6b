package config

import (
	"fmt"
	"reflect"

	"github.com/memsidecar/memsidecar/internal/memory"
)

// Quota is how much may be stored of something in a namespace, 0 for any amount: what is set for all, unless the first entry of
// namespaces that fits says otherwise.
func (c *Config) Quota(namespace string, name memory.QuotaName) int64 {
	for i := range c.Namespaces {
		if n := &c.Namespaces[i]; n.Fits(namespace) {
			if own := n.quota(name); own != nil {
				return *own
			}
			break
		}
	}
	if of, ok := quotas[name]; ok {
		return of.all(&c.Limits)
	}
	return 0
}

// quotas are where the quotas are set: for all, and in an entry of namespaces.
var quotas = map[memory.QuotaName]struct {
	all func(*Limits) int64
	own func(*Namespace) *int64
}{
	memory.QuotaNamespaceMemories: {func(l *Limits) int64 { return l.NamespaceMemories }, func(n *Namespace) *int64 { return n.NamespaceMemories }},
	memory.QuotaNamespaceHistory:  {func(l *Limits) int64 { return l.NamespaceHistoryBytes }, func(n *Namespace) *int64 { return n.NamespaceHistoryBytes }},
	memory.QuotaUserHistory:       {func(l *Limits) int64 { return l.UserHistoryBytes }, func(n *Namespace) *int64 { return n.UserHistoryBytes }},
	memory.QuotaNamespaceLists:    {func(l *Limits) int64 { return l.NamespaceLists }, func(n *Namespace) *int64 { return n.NamespaceLists }},
	memory.QuotaUserLists:         {func(l *Limits) int64 { return l.UserLists }, func(n *Namespace) *int64 { return n.UserLists }},
}

// quota is what the entry says of a quota, nil for nothing.
func (n *Namespace) quota(name memory.QuotaName) *int64 {
	if of, ok := quotas[name]; ok {
		return of.own(n)
	}
	return nil
}

// validateQuotas checks the quotas of some namespaces by the limits of those for all.
func (n Namespace) validateQuotas(key string, check func(key, problem, fix string)) {
	for field := range reflect.TypeFor[Limits]().Fields() {
		name := field.Tag.Get("koanf")
		value := n.quota(memory.QuotaName(name))
		if value == nil {
			continue
		}
		if fix := outside(reflect.ValueOf(*value), field.Tag); fix != "" {
			check(key+"."+name, fmt.Sprintf("is %d", *value), fix)
		}
	}
}
