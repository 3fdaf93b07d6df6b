package server

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/memsidecar/memsidecar/internal/lists"
	"github.com/memsidecar/memsidecar/internal/memory"
	"github.com/memsidecar/memsidecar/internal/prompt"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

// numberedListService implements memsidecarv1.NumberedListServiceServer.
type numberedListService struct {
	memsidecarv1.UnimplementedNumberedListServiceServer
	Lists   *lists.Service
	options Options
}

// PutItems implements memsidecarv1.NumberedListServiceServer.
func (s *numberedListService) PutItems(ctx context.Context, r *memsidecarv1.PutItemsRequest) (*memsidecarv1.PutItemsResponse, error) {
	var v memory.Violations
	scope, view := s.view(r.GetScope(), r.GetRegistryKind(), r.GetList(), &v)
	put := lists.Put{View: view, Items: toItems(r.GetItems(), false, &v)}
	switch r.GetMode() {
	case memsidecarv1.PutMode_PUT_MODE_UNSPECIFIED, memsidecarv1.PutMode_PUT_MODE_MANUAL:
		put.Mode = lists.Manual
		put.Place = s.place(scope, &v)
		if len(put.Items) == 0 {
			v.Add("items", "is required: a list needs at least one item")
		}
	case memsidecarv1.PutMode_PUT_MODE_SCHEDULED:
		put.Mode = lists.Scheduled
	default:
		v.Add("mode", "is %d, which is not a known mode", r.GetMode())
	}
	spoken := languageOf(r.GetLanguage(), &v)
	if err := v.Err(); err != nil {
		return nil, err
	}
	done, err := s.Lists.Put(ctx, put)
	if err != nil {
		return nil, err
	}
	resp := &memsidecarv1.PutItemsResponse{
		LastCheckTime: fromTime(done.LastCheck), EvictedCount: clamped(done.Evicted), Items: fromNumbered(done.Items),
	}
	for _, item := range done.Items {
		if item.New {
			resp.NewCount++
		}
	}
	prompts := lists.PromptsFor(spoken, lists.Titles(done.Items))
	resp.PromptLine = prompts.Rule()
	if done.Shown {
		resp.PromptLine = prompts.List(view.List, len(done.Items))
	}
	return resp, nil
}

// SelectItems implements memsidecarv1.NumberedListServiceServer.
func (s *numberedListService) SelectItems(
	ctx context.Context,
	r *memsidecarv1.SelectItemsRequest,
) (*memsidecarv1.SelectItemsResponse, error) {
	var v memory.Violations
	place := s.place(scopeOf(r.GetScope(), false, &v), &v)
	v.Check("list", memory.IDProblem(r.GetList()))
	spoken := languageOf(r.GetLanguage(), &v)
	var selected func() (lists.Choice, bool, error)
	switch said := r.GetSelector().(type) {
	case *memsidecarv1.SelectItemsRequest_Ordinal:
		selected = func() (lists.Choice, bool, error) {
			c, err := s.Lists.Select(ctx, *place, r.GetList(), lists.Ordinal(max(0, said.Ordinal))) // only a text can count from the end
			return c, true, err
		}
	case *memsidecarv1.SelectItemsRequest_Text:
		selected = func() (lists.Choice, bool, error) { return s.Lists.SelectText(ctx, *place, r.GetList(), said.Text) }
	default:
		v.Add("ordinal", "is required when text is empty: set one of the two")
	}
	if err := v.Err(); err != nil {
		return nil, err
	}
	c, understood, err := selected()
	if !understood {
		v.Add("text", "is %q, which is not a selection from a list: use for example "+
			"\"3\", \"第三个\", \"1 and 3\", \"none of them\" or an item's title", shortened(r.GetText()))
		err = v.Err()
	}
	if err != nil {
		return nil, err
	}
	resp := &memsidecarv1.SelectItemsResponse{
		List: c.Shown.List, ItemCount: clamped(len(c.Shown.Items)), ShowTime: fromTime(c.Shown.ShownAt),
		Kind: memsidecarv1.SelectionKind_SELECTION_KIND_NONE, Selected: fromNumbered(c.Items),
		PromptLine: lists.PromptsFor(spoken, lists.Titles(c.Shown.Items)).Chosen(c.Items, len(c.Shown.Items)),
	}
	if len(c.Items) > 0 {
		resp.Kind = memsidecarv1.SelectionKind_SELECTION_KIND_ITEMS
		resp.Number, resp.Item = clamped(c.Items[0].Number), fromItem(&c.Items[0].Item)
	}
	return resp, nil
}

// FilterUnseen implements memsidecarv1.NumberedListServiceServer.
func (s *numberedListService) FilterUnseen(
	ctx context.Context,
	r *memsidecarv1.FilterUnseenRequest,
) (*memsidecarv1.FilterUnseenResponse, error) {
	var v memory.Violations
	_, view := s.view(r.GetScope(), r.GetRegistryKind(), r.GetList(), &v)
	keys := toKeys(r.GetKeys(), "keys", lists.MaxKeys, &v)
	if err := v.Err(); err != nil {
		return nil, err
	}
	unseen, last, err := s.Lists.Unseen(ctx, view, keys)
	if err != nil {
		return nil, err
	}
	return &memsidecarv1.FilterUnseenResponse{UnseenKeys: unseen, LastCheckTime: fromTime(last)}, nil
}

// ListItems implements memsidecarv1.NumberedListServiceServer.
func (s *numberedListService) ListItems(ctx context.Context, r *memsidecarv1.ListItemsRequest) (*memsidecarv1.ListItemsResponse, error) {
	var v memory.Violations
	_, view := s.view(r.GetScope(), r.GetRegistryKind(), r.GetList(), &v)
	size, after := page(r, defaultPageSize, &v)
	if err := v.Err(); err != nil {
		return nil, err
	}
	found, err := s.Lists.Items(ctx, view, after, size)
	if err != nil {
		return nil, err
	}
	resp := &memsidecarv1.ListItemsResponse{TotalSize: found.Total, LastCheckTime: fromTime(found.LastCheck)}
	for i := range found.Items {
		resp.Items = append(resp.Items, fromItem(&found.Items[i]))
	}
	resp.NextPageToken = found.Next
	return resp, nil
}

// GetNumberedList implements memsidecarv1.NumberedListServiceServer.
func (s *numberedListService) GetNumberedList(
	ctx context.Context,
	r *memsidecarv1.GetNumberedListRequest,
) (*memsidecarv1.GetNumberedListResponse, error) {
	var v memory.Violations
	place := s.place(scopeOf(r.GetScope(), false, &v), &v)
	v.Check("list", memory.IDProblem(r.GetList()))
	spoken := languageOf(r.GetLanguage(), &v)
	if err := v.Err(); err != nil {
		return nil, err
	}
	shown, err := s.Lists.Shown(ctx, *place, r.GetList())
	if err != nil {
		return nil, err
	}
	return &memsidecarv1.GetNumberedListResponse{
		NumberedList: fromShown(&shown, s.Lists.Expiry(&shown)),
		PromptLine:   lists.PromptsFor(spoken, lists.Titles(shown.Items)).List(shown.List, len(shown.Items)),
	}, nil
}

// DeleteNumberedList implements memsidecarv1.NumberedListServiceServer.
func (s *numberedListService) DeleteNumberedList(
	ctx context.Context,
	r *memsidecarv1.DeleteNumberedListRequest,
) (*memsidecarv1.DeleteNumberedListResponse, error) {
	var v memory.Violations
	scope, view := s.view(r.GetScope(), r.GetRegistryKind(), r.GetList(), &v)
	registry := &view
	var place *lists.Place
	switch r.GetPart() {
	case memsidecarv1.NumberedListPart_NUMBERED_LIST_PART_UNSPECIFIED:
		if p, ok := lists.PlaceOf(scope, s.options.audience(scope)); ok { // a scope of a namespace alone has no shown list
			place = &p
		}
	case memsidecarv1.NumberedListPart_NUMBERED_LIST_PART_REGISTRY:
	case memsidecarv1.NumberedListPart_NUMBERED_LIST_PART_SHOWN:
		registry, place = nil, s.place(scope, &v)
	default:
		v.Add("part", "is %d, which is not a known part", r.GetPart())
	}
	if err := v.Err(); err != nil {
		return nil, err
	}
	items, shown, err := s.Lists.Delete(ctx, registry, place, view.List)
	if err != nil {
		return nil, err
	}
	return &memsidecarv1.DeleteNumberedListResponse{ItemCount: items, ShownDeleted: shown}, nil
}

// ImportNumberedList implements memsidecarv1.NumberedListServiceServer.
func (s *numberedListService) ImportNumberedList(
	ctx context.Context,
	r *memsidecarv1.ImportNumberedListRequest,
) (*memsidecarv1.ImportNumberedListResponse, error) {
	var v memory.Violations
	scope, view := s.view(r.GetScope(), r.GetRegistryKind(), r.GetList(), &v)
	put := lists.Put{
		View: view, Mode: lists.Import, Items: toItems(r.GetItems(), true, &v),
		ShownKeys: toKeys(r.GetShownKeys(), "shown_keys", lists.MaxItems, &v),
		LastCheck: pastTime(toTime(r.GetLastCheckTime(), "last_check_time", &v), "last_check_time", &v),
		ShownAt:   pastTime(toTime(r.GetShowTime(), "show_time", &v), "show_time", &v),
	}
	if len(put.ShownKeys) > 0 {
		put.Place = s.place(scope, &v)
	}
	if err := v.Err(); err != nil {
		return nil, err
	}
	done, err := s.Lists.Put(ctx, put)
	if err != nil {
		return nil, err
	}
	resp := &memsidecarv1.ImportNumberedListResponse{EvictedCount: clamped(done.Evicted), Shown: done.Shown}
	for _, item := range done.Items {
		if item.New {
			resp.AddedCount++
		} else {
			resp.SkippedCount++
		}
	}
	return resp, nil
}

// view reads which registry a request names, as the scope sees it.
func (s *numberedListService) view(
	p *memsidecarv1.Scope,
	kind memsidecarv1.RegistryKind,
	list string,
	v *memory.Violations,
) (memory.Scope, lists.View) {
	scope := scopeOf(p, false, v)
	known, ok := registryKinds.toDomain[kind]
	if !ok {
		known = lists.Kind(kind.String()) // unknown values are rejected by RegistryOf
	}
	registry, wrong := lists.RegistryOf(scope, known, list)
	*v = append(*v, wrong...)
	return scope, lists.View{Registry: registry, Audience: s.options.audience(scope)}
}

// place returns where the scope's lists are shown; never nil.
func (s *numberedListService) place(scope memory.Scope, v *memory.Violations) *lists.Place {
	place, ok := lists.PlaceOf(scope, s.options.audience(scope))
	if !ok {
		v.Add("scope", "does not say where the list is shown: set session_id, channel_id or user_id")
	}
	return &place
}

var registryKinds = newNames(map[memsidecarv1.RegistryKind]lists.Kind{
	memsidecarv1.RegistryKind_REGISTRY_KIND_UNSPECIFIED: "",
	memsidecarv1.RegistryKind_REGISTRY_KIND_USER:        lists.KindUser,
	memsidecarv1.RegistryKind_REGISTRY_KIND_CHANNEL:     lists.KindChannel,
	memsidecarv1.RegistryKind_REGISTRY_KIND_NAMESPACE:   lists.KindNamespace,
})

// toItems converts items. Imported items carry fields that the sidecar otherwise sets itself.
func toItems(list []*memsidecarv1.RegistryItem, imported bool, v *memory.Violations) []lists.Item {
	if len(list) > lists.MaxItems {
		v.Add("items", "has %d items, more than %d: send them in parts", len(list), lists.MaxItems)
		return nil
	}
	items := make([]lists.Item, len(list))
	total := 0
	for i, p := range list {
		at := fmt.Sprintf("items[%d]", i)
		items[i] = lists.Item{Key: p.GetKey(), Title: p.GetTitle(), Attributes: p.GetAttributesJson()}
		if prompt.Line(p.GetTitle()) == "" { // a user would see nothing
			items[i].Title = ""
		}
		v.Check(at+".key", keyProblem(p.GetKey()))
		if n := utf8.RuneCountInString(p.GetTitle()); n > lists.MaxTitleRunes {
			v.Add(at+".title", "is %d characters, more than %d", n, lists.MaxTitleRunes)
		}
		v.Check(at+".attributes_json", attributesProblem(p.GetAttributesJson()))
		total += len(p.GetKey()) + len(p.GetTitle()) + len(p.GetAttributesJson())
		if !imported {
			continue
		}
		items[i].Notified = p.GetNotified()
		items[i].FirstSeen = pastTime(toTime(p.GetFirstSeenTime(), at+".first_seen_time", v), at+".first_seen_time", v)
	}
	if total > lists.MaxBytes {
		v.Add("items", "are %d bytes together, more than %d: send them in parts", total, lists.MaxBytes)
	}
	return items
}

func toKeys(keys []string, field string, most int, v *memory.Violations) []string {
	if len(keys) > most {
		v.Add(field, "has %d keys, more than %d: ask in parts", len(keys), most)
		return nil
	}
	for i, key := range keys {
		v.Check(fmt.Sprintf("%s[%d]", field, i), keyProblem(key))
	}
	return keys
}

// clockSkew is how far the clock of another machine may be ahead.
const clockSkew = 24 * time.Hour

// pastTime rejects future times, which would keep items without limit.
func pastTime(t time.Time, field string, v *memory.Violations) time.Time {
	switch {
	case t.IsZero():
	case t.After(time.Now().Add(clockSkew)):
		v.Add(field, "is in the future")
	default:
		v.Check(field, memory.TimeProblem(t))
	}
	return t
}

func keyProblem(key string) string {
	switch {
	case key == "":
		return "is required: set the item's URL or id"
	case len(key) > lists.MaxKeyBytes:
		return fmt.Sprintf("is %d bytes, more than %d", len(key), lists.MaxKeyBytes)
	case strings.ContainsFunc(key, unicode.IsControl):
		return "holds a control character"
	}
	return ""
}

func attributesProblem(attributes string) string {
	if attributes == "" {
		return ""
	}
	if len(attributes) > lists.MaxAttributesBytes {
		return fmt.Sprintf("is %d bytes, more than %d", len(attributes), lists.MaxAttributesBytes)
	}
	var object map[string]json.RawMessage
	if json.Unmarshal([]byte(attributes), &object) != nil || object == nil {
		return "is not a JSON object"
	}
	return ""
}

func fromItem(i *lists.Item) *memsidecarv1.RegistryItem {
	return &memsidecarv1.RegistryItem{
		Key: i.Key, Title: i.Title, AttributesJson: i.Attributes, FirstSeenTime: fromTime(i.FirstSeen), Notified: i.Notified,
	}
}

func fromNumbered(items []lists.Numbered) []*memsidecarv1.NumberedItem {
	list := make([]*memsidecarv1.NumberedItem, len(items))
	for i := range items {
		n := &items[i]
		list[i] = &memsidecarv1.NumberedItem{Number: clamped(n.Number), Item: fromItem(&n.Item), IsNew: n.New}
	}
	return list
}

func fromShown(s *lists.Shown, expiry time.Time) *memsidecarv1.NumberedList {
	return &memsidecarv1.NumberedList{
		List: s.List, RegistryKind: registryKinds.toProto[s.Kind], Items: fromNumbered(s.Items), ShowTime: fromTime(s.ShownAt),
		ExpireTime: fromTime(expiry),
	}
}

// exportedList converts a list together with where it was shown.
func exportedList(s *lists.Shown, expiry time.Time) *memsidecarv1.ExportedNumberedList {
	scope := memory.Scope{Namespace: s.Place.Namespace, UserID: s.Place.Member, Channel: s.Place.Channel}
	if s.Place.Kind == lists.PlaceSession {
		scope.SessionID = s.Place.ID
	}
	return &memsidecarv1.ExportedNumberedList{NumberedList: fromShown(s, expiry), Scope: fromScope(scope)}
}
