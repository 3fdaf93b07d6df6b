package memory

// SharedGroups are groups of a namespace that see what was learned in each other.
type SharedGroups struct {
	Namespace string // normalized
	Channels  []string
}

// Visibility is who may see what: the rule, and the groups that share. It is for reading only: what is compared and merged
// is what has the same visibility key. The zero value shows nothing.
type Visibility struct {
	rule   VisibilityRule
	shares map[place][]Channel
}

// place is a group of a namespace: ids of channels are unique only there.
type place struct{ namespace, channel string }

// NewVisibility returns the policy of a rule and of lists of groups that share. A group of several lists shares with all
// that are in one of them, but these do not share with each other.
func NewVisibility(rule VisibilityRule, shared []SharedGroups) Visibility {
	v := Visibility{rule, map[place][]Channel{}}
	for _, s := range shared {
		for _, channel := range s.Channels {
			in := place{s.Namespace, channel}
			for _, other := range s.Channels {
				v.shares[in] = append(v.shares[in], Channel{Kind: ChannelGroup, ID: other})
			}
		}
	}
	return v
}

// AudienceOf is what a request with the scope may see of its user's data.
func (v Visibility) AudienceOf(s Scope) Audience {
	others := v.shares[place{s.Namespace, s.Channel.ID}]
	if v.rule == VisibilityChannel && s.Channel.Kind == ChannelGroup && len(others) > 0 {
		a := Audience{keys: map[string]bool{s.Channel.VisibilityKey(): true}}
		for _, c := range others {
			a.keys[c.VisibilityKey()] = true
		}
		return a
	}
	return v.rule.AudienceOf(s.Channel)
}
