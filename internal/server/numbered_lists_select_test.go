package server_test

import (
	"fmt"
	"strings"
	"testing"

	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"

	"github.com/memsidecar/memsidecar/internal/testkit/sidecartest"
)

// TestSelectionByNumbersTitleAndNone: An answer may select several items; the single-item fields have the first. "None" is an answer of
// its own. Ambiguous texts are refused.
func TestSelectionByNumbersTitleAndNone(t *testing.T) {
	t.Parallel()
	const items, none = memsidecarv1.SelectionKind_SELECTION_KIND_ITEMS, memsidecarv1.SelectionKind_SELECTION_KIND_NONE
	r := sidecartest.Serve(t)
	scope := sidecartest.Direct("小林")
	putItems(t, r, &memsidecarv1.PutItemsRequest{Scope: scope, Items: listing(5)})
	for text, want := range map[string]string{
		"给我第三个的链接": "3", "3的详情": "3", "details of 3": "3", "3 plz": "3", "惊变28年2": "3", "1 and 3": "1 3", "第五个和第二个": "5 2", "前两个": "1 2",
		"最后两个": "4 5", "都要": "1 2 3 4 5", "none of them": "", "一个都不要": "",
	} {
		got := sidecartest.Must(lists(r).SelectItems(t.Context(), choice(scope, text)))(t)
		var numbers []string
		for _, n := range got.GetSelected() {
			numbers = append(numbers, fmt.Sprint(n.GetNumber()))
			if !strings.Contains(got.GetPromptLine(), n.GetItem().GetKey()) {
				t.Errorf("%q: the prompt line lacks %s: %s", text, n.GetItem().GetKey(), got.GetPromptLine())
			}
		}
		if strings.Join(numbers, " ") != want || got.GetItemCount() != 5 {
			t.Errorf("%q selects %v, want %s", text, numbers, want)
		}
		switch {
		case want == "":
			if got.GetKind() != none || got.GetNumber() != 0 || got.GetItem() != nil || strings.Contains(got.GetPromptLine(), "/mv/") {
				t.Errorf("%q: %s", text, got)
			}
		case got.GetKind() != items, got.GetNumber() != got.GetSelected()[0].GetNumber(), got.GetItem().GetKey() != got.GetSelected()[0].GetItem().GetKey():
			t.Errorf("%q: %s", text, got)
		}
	}
	for _, text := range []string{"3 people are coming", "3点开会", "I have 3 cats", "我有三只猫", "1 and 1"} {
		_, err := lists(r).SelectItems(t.Context(), choice(scope, text))
		sidecartest.WantInvalid(t, err, "text")
	}
}
