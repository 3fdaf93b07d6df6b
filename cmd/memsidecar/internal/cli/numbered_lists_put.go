package cli

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/memsidecar/memsidecar/cmd/memsidecar/internal/migrate"
	"github.com/memsidecar/memsidecar/cmd/memsidecar/internal/migrate/seenmovies"
	memsidecarv1 "github.com/memsidecar/memsidecar/proto/memsidecar/v1"
)

type numberedListsPut struct {
	File      string `arg:"" optional:"" default:"-" complete:"file" help:"JSONL with one item per line; \"-\" (the default) is standard input."`
	Scheduled bool   `help:"A scheduled check: add only new items, and do not change the current list."`

	registryFlags
	languageFlag
	numberedListScope
	calls
	output
}

// Help implements kong.HelpProvider.
func (numberedListsPut) Help() string {
	return numberedListsHelp + `A line is an object with key, title and attributes. Lines are numbered in order and become the current
list. If a line has a mistake, none is stored.

Examples:

    memsidecar numbered-lists put -u alice films.jsonl
    echo '{"key": "/mv/823D", "title": "惊变28年2：白骨圣殿", "attributes": {"rating": "7.2"}}' | memsidecar numbered-lists put -u 小林
    memsidecar numbered-lists put --scheduled --registry namespace films.jsonl`
}

// Run stores the list.
func (c numberedListsPut) Run(ctx context.Context, p *Program) error {
	scope, err := c.scope()
	if err != nil {
		return err
	}
	request := &memsidecarv1.PutItemsRequest{Scope: scope, RegistryKind: c.kind(), List: c.Name, Language: c.Language}
	if c.Scheduled {
		request.Mode = memsidecarv1.PutMode_PUT_MODE_SCHEDULED
	}
	var lines []int
	if request.Items, lines, err = c.items(ctx, p); err != nil {
		return err
	}
	conn, err := c.dial(p)
	if err != nil {
		return err
	}
	defer conn.close()
	resp, err := conn.PutItems(ctx, request)
	if err != nil {
		return itemLines(err, c.File, lines)
	}
	if err := c.show(p, resp, func(s *screen) {
		t := itemTable()
		for _, n := range resp.GetItems() {
			t.numbered(n)
		}
		s.print(t)
	}); err != nil {
		return err
	}
	p.note("%d of %s are new", resp.GetNewCount(), count(len(resp.GetItems()), "item", "items"))
	evictedNote(p, resp.GetEvictedCount())
	return nil
}

func evictedNote(p *Program, evicted int32) {
	if evicted > 0 {
		p.note(
			"%s of the registry dropped, because they were too old (numbered_lists.max_age) or too many (numbered_lists.max_items)",
			count(evicted, "item", "items"),
		)
	}
}

// itemLines replaces positions by lines of a file.
func itemLines(err error, file string, lines []int) error {
	if ExitCode(err) != ExitUsage {
		return err
	}
	message := strings.TrimPrefix(block(serverMessage(err)), "invalid request: ")
	return usage("%s: %s", inputName(file), listedItem.ReplaceAllStringFunc(message, func(found string) string {
		i, err := strconv.Atoi(listedItem.FindStringSubmatch(found)[1])
		if err != nil || i >= len(lines) {
			return found
		}
		return fmt.Sprintf("line %d: ", lines[i])
	}))
}

// listedItem matches the sidecar's name of an item.
var listedItem = regexp.MustCompile(`items\[(\d+)\]\.?`)

// items returns the items to put, with their lines.
func (c numberedListsPut) items(ctx context.Context, p *Program) (items []*memsidecarv1.RegistryItem, numbers []int, err error) {
	in, err := p.open(ctx, c.File)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	lines := bufio.NewScanner(in)
	lines.Buffer(nil, maxRecordBytes)
	for n := 1; lines.Scan(); n++ {
		if strings.TrimSpace(lines.Text()) == "" {
			continue
		}
		item, err := readItem(lines.Bytes())
		if err != nil {
			return nil, nil, usage("%s: line %d: %s", inputName(c.File), n, line(err.Error()))
		}
		items, numbers = append(items, item), append(numbers, n)
	}
	switch {
	case ctx.Err() != nil:
		return nil, nil, interrupted("; nothing was sent")
	case lines.Err() != nil:
		return nil, nil, wrapError(lines.Err(), "%s", inputName(c.File))
	}
	return items, numbers, nil
}

func readItem(text []byte) (*memsidecarv1.RegistryItem, error) {
	var item struct {
		Key        string          `json:"key"`
		Title      string          `json:"title"`
		Attributes json.RawMessage `json:"attributes"`
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&item); err != nil {
		return nil, errors.New(strings.TrimPrefix(err.Error(), "json: ") + `: write {"key": …, "title": …, "attributes": {…}}`)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more text follows the item: write one item per line")
	}
	attributes := string(item.Attributes)
	if attributes == "null" {
		attributes = ""
	}
	return &memsidecarv1.RegistryItem{Key: item.Key, Title: item.Title, AttributesJson: attributes}, nil
}

type numberedListsImport struct {
	File   string `arg:"" complete:"file" help:"The file. \"-\" is standard input."`
	Format string `enum:"seen-movies" default:"seen-movies" placeholder:"FORMAT" help:"seen-movies: a film bot's seen_movies.json (${default})."`
	Show   bool   `help:"Also make the list that the bot showed last the current list."`

	zoneFlag
	registryFlags
	numberedListScope
	calls
	output
}

// Help implements kong.HelpProvider.
func (numberedListsImport) Help() string {
	return numberedListsHelp + `A film's URL becomes its key; rating, tag and other fields become its attributes. The times at which films were first seen and
the notified marks are kept. Existing items are not changed, so importing twice adds nothing.

Examples:

    memsidecar numbered-lists import -u 小林 --list films --show --time-zone Asia/Shanghai seen_movies.json
    memsidecar numbered-lists import --registry namespace seen_movies.json`
}

// Run sends the file's films.
func (c numberedListsImport) Run(ctx context.Context, p *Program) error {
	scope, err := c.scope()
	if err != nil {
		return err
	}
	file, err := c.read(ctx, p)
	if err != nil {
		return err
	}
	conn, err := c.dial(p)
	if err != nil {
		return err
	}
	defer conn.close()
	total, err := c.send(ctx, conn, scope, file)
	if err != nil {
		return err
	}
	if err := c.show(p, total, func(s *screen) {
		s.fields("added", cell{strconv.Itoa(int(total.GetAddedCount())), green}, "there already", total.GetSkippedCount(), "shown", yesNo(total.GetShown()))
	}); err != nil {
		return err
	}
	evictedNote(p, total.GetEvictedCount())
	return nil
}

// send sends the films, and reports the outcome.
func (c numberedListsImport) send(
	ctx context.Context,
	conn *connection,
	scope *memsidecarv1.Scope,
	file movies,
) (*memsidecarv1.ImportNumberedListResponse, error) {
	total := &memsidecarv1.ImportNumberedListResponse{}
	items := file.items()
	for first := true; first || len(items) > 0; first = false {
		part := items[:min(len(items), maxImportBatch)]
		items = items[len(part):]
		request := &memsidecarv1.ImportNumberedListRequest{Scope: scope, RegistryKind: c.kind(), List: c.Name, Items: part}
		if len(items) == 0 {
			request.LastCheckTime = optionalTime(file.LastCheck)
			if c.Show {
				request.ShownKeys, request.ShowTime = file.Shown, optionalTime(file.ShownAt)
			}
		}
		resp, err := conn.ImportNumberedList(ctx, request)
		if err != nil {
			return total, wrapError(err, "%s", inputName(c.File))
		}
		total.AddedCount += resp.GetAddedCount()
		total.SkippedCount += resp.GetSkippedCount()
		total.EvictedCount += resp.GetEvictedCount()
		total.Shown = resp.GetShown()
	}
	return total, nil
}

// maxImportBatch is the limit of one call.
const maxImportBatch = 500

// movies is a file of films.
type movies struct{ *seenmovies.File }

func (c numberedListsImport) read(ctx context.Context, p *Program) (_ movies, err error) {
	zone, err := c.zone()
	if err != nil {
		return movies{}, err
	}
	in, err := p.open(ctx, c.File)
	if err != nil {
		return movies{}, err
	}
	defer func() { err = errors.Join(err, in.Close()) }()
	text, err := migrate.Text(in)
	var file *seenmovies.File
	if err == nil {
		file, err = seenmovies.Read(text, zone)
	}
	switch {
	case ctx.Err() != nil:
		return movies{}, interrupted("; nothing was sent")
	case err != nil:
		return movies{}, usage("%s: %s", inputName(c.File), line(err.Error()))
	}
	return movies{file}, nil
}

func (m movies) items() []*memsidecarv1.RegistryItem {
	items := make([]*memsidecarv1.RegistryItem, len(m.Movies))
	for i, movie := range m.Movies {
		items[i] = &memsidecarv1.RegistryItem{
			Key: movie.URL, Title: movie.Title, AttributesJson: movie.Attributes, Notified: movie.Notified,
			FirstSeenTime: optionalTime(movie.FirstSeen),
		}
	}
	return items
}

func optionalTime(t time.Time) *timestamppb.Timestamp { return timeArg{t}.timestamp() }
