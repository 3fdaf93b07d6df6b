package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/memsidecar/memsidecar/internal/prompt"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

func (t *tools) addNumberedLists(server *sdk.Server) {
	sdk.AddTool(server, &sdk.Tool{
		Name: "put_numbered_list", Annotations: annotations("Keep a numbered list", false, true),
		Description: "Keep the numbered list that you are about to show, in the order in which you show it, so that the user can answer with a number. " +
			"It replaces the list shown before. Keys are the items' real URLs or ids, as a search returned them. " + neverGuess,
	}, t.put)
	sdk.AddTool(server, &sdk.Tool{
		Name: "select_from_numbered_list", Annotations: annotations("Look a number up", true, false),
		Description: "What the user means by a number, an ordinal, several of them, a title, or none of them: returns the real items of " +
			"the list shown last. " + neverGuess,
	}, t.choose)
}

type putInput struct {
	Items []putItem `json:"items" jsonschema:"in the order in which the user sees them, 1 to 500"`
	List  string    `json:"list,omitempty" jsonschema:"a name that keeps lists of different things apart, such as films; optional"`
}

type putItem struct {
	Key        string         `json:"key" jsonschema:"the item's real URL or id"`
	Title      string         `json:"title,omitempty" jsonschema:"what people call it"`
	Attributes map[string]any `json:"attributes,omitempty" jsonschema:"other data about the item"`
}

type putOutput struct {
	Items []numbered `json:"items" jsonschema:"the list to show"`
	Rule  string     `json:"rule" jsonschema:"what the numbers mean"`
}

type numbered struct {
	Number int32  `json:"number"`
	Key    string `json:"key"`
	Title  string `json:"title,omitempty"`
	IsNew  bool   `json:"is_new" jsonschema:"it was not in any list before"`
}

func (t *tools) put(ctx context.Context, _ *sdk.CallToolRequest, in putInput) (*sdk.CallToolResult, putOutput, error) {
	request := &memsidecarv1.PutItemsRequest{Scope: t.WriteScope, List: in.List}
	for i, item := range in.Items {
		attributes := ""
		if len(item.Attributes) > 0 {
			text, err := json.Marshal(item.Attributes)
			if err != nil {
				return nil, putOutput{}, fmt.Errorf("items[%d].attributes cannot be kept: %w", i, err)
			}
			attributes = string(text)
		}
		request.Items = append(request.Items, &memsidecarv1.RegistryItem{Key: item.Key, Title: item.Title, AttributesJson: attributes})
	}
	resp, err := t.NumberedLists.PutItems(ctx, request)
	if err != nil {
		return nil, putOutput{}, words(err)
	}
	out := putOutput{Items: []numbered{}, Rule: resp.GetPromptLine()}
	for _, item := range resp.GetItems() {
		out.Items = append(out.Items, numbered{
			Number: item.GetNumber(), Key: item.GetItem().GetKey(), Title: prompt.Line(item.GetItem().GetTitle()), IsNew: item.GetIsNew(),
		})
	}
	return nil, out, nil
}

type chooseInput struct {
	Answer string `json:"answer" jsonschema:"what the user said, word for word: 3, the third one, 第三个, last, 1 and 3, none of them"`
	List   string `json:"list,omitempty" jsonschema:"the name given to put_numbered_list; by default the list shown last"`
}

type chooseOutput struct {
	chosen
	Selected []chosen `json:"selected" jsonschema:"all selected items, the first one included; empty when the user wants none of them"`
	None     bool     `json:"none" jsonschema:"the user wants none of them"`
	Count    int32    `json:"count" jsonschema:"how many items the list has"`
	Rule     string   `json:"rule" jsonschema:"how to use it"`
}

type chosen struct {
	Number     int32          `json:"number"`
	Key        string         `json:"key" jsonschema:"the item's real URL or id: use it as it is"`
	Title      string         `json:"title,omitempty"`
	Attributes map[string]any `json:"attributes,omitempty"`
}

func (t *tools) choose(ctx context.Context, _ *sdk.CallToolRequest, in chooseInput) (*sdk.CallToolResult, chooseOutput, error) {
	resp, err := t.NumberedLists.SelectItems(ctx, &memsidecarv1.SelectItemsRequest{
		Scope: t.WriteScope, List: in.List, Selector: &memsidecarv1.SelectItemsRequest_Text{Text: in.Answer},
	})
	if err != nil {
		return nil, chooseOutput{}, refused(err, "Do not invent an item: ask the user which one they mean, or search again")
	}
	out := chooseOutput{
		Selected: []chosen{}, None: resp.GetKind() == memsidecarv1.SelectionKind_SELECTION_KIND_NONE,
		Count: resp.GetItemCount(), Rule: resp.GetPromptLine(),
	}
	for _, n := range resp.GetSelected() {
		item := chosen{Number: n.GetNumber(), Key: n.GetItem().GetKey(), Title: prompt.Line(n.GetItem().GetTitle())}
		if text := n.GetItem().GetAttributesJson(); text != "" {
			if err := json.Unmarshal([]byte(text), &item.Attributes); err != nil {
				return nil, chooseOutput{}, fmt.Errorf("the item's attributes cannot be read: %w", err)
			}
			item.Attributes, _ = harmless(item.Attributes).(map[string]any)
		}
		out.Selected = append(out.Selected, item)
	}
	if len(out.Selected) > 0 {
		out.chosen = out.Selected[0]
	}
	return nil, out, nil
}

// harmless sanitizes the texts in a JSON value.
func harmless(value any) any {
	switch v := value.(type) {
	case string:
		return strings.Join(prompt.Lines(v), "\n")
	case []any:
		for i := range v {
			v[i] = harmless(v[i])
		}
	case map[string]any:
		clean := make(map[string]any, len(v))
		for name, inner := range v {
			clean[prompt.Line(name)] = harmless(inner)
		}
		return clean
	}
	return value
}
