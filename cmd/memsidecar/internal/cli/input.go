package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/schollz/progressbar/v3"
)

// open opens a file, or standard input for "-". Reading ends when the context does.
func (p *Program) open(ctx context.Context, path string) (io.ReadCloser, error) {
	if path == "-" {
		return io.NopCloser(withoutBOM(interruptible(ctx, p.Stdin))), nil
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, usage("%v", err)
	}
	if info, err := file.Stat(); err == nil && info.Mode().IsRegular() {
		return readCloser{withoutBOM(file), file}, nil
	}
	return readCloser{withoutBOM(interruptible(ctx, file)), file}, nil
}

// withoutBOM skips the byte order mark with which some Windows programs begin their files.
func withoutBOM(r io.Reader) io.Reader {
	in, begun := bufio.NewReaderSize(r, 64<<10), false
	return readerFunc(func(b []byte) (int, error) {
		if !begun {
			begun = true
			const mark = "\ufeff"
			if head, _ := in.Peek(len(mark)); string(head) == mark { // the next read returns the error again
				_, _ = in.Discard(len(mark)) // which is there
			}
		}
		return in.Read(b)
	})
}

type readCloser struct {
	io.Reader
	io.Closer
}

// interruptible stops waiting for a read when the context ends. A read from a terminal or a pipe cannot be cancelled: it is abandoned and
// ends with the process.
func interruptible(ctx context.Context, r io.Reader) io.Reader {
	return readerFunc(func(b []byte) (int, error) {
		type result struct {
			data []byte
			err  error
		}
		done := make(chan result, 1)
		go func() {
			own := make([]byte, len(b))
			n, err := r.Read(own)
			done <- result{own[:n], err}
		}()
		select {
		case <-ctx.Done():
			return 0, ctx.Err()
		case got := <-done:
			return copy(b, got.data), got.err
		}
	})
}

type readerFunc func([]byte) (int, error)

// Read implements io.Reader.
func (f readerFunc) Read(b []byte) (int, error) { return f(b) }

// maxTextBytes exceeds every text that the sidecar accepts.
const maxTextBytes = 1 << 20

// text returns the text in the arguments; a single "-" is standard input.
func (p *Program) text(ctx context.Context, args []string) (string, error) {
	if len(args) != 1 || args[0] != "-" {
		return strings.Join(args, " "), nil
	}
	data, err := io.ReadAll(io.LimitReader(interruptible(ctx, p.Stdin), maxTextBytes+1))
	if err != nil {
		return "", wrapError(err, "reading standard input")
	}
	if len(data) > maxTextBytes {
		return "", usage("standard input is longer than %d bytes", maxTextBytes)
	}
	return strings.TrimRight(string(data), "\r\n"), nil
}

// confirm asks the user to type a word. Without a terminal, --yes is required.
func (p *Program) confirm(ctx context.Context, question, word string) error {
	if _, ok := terminal(p.Stdin); !ok {
		return usage("standard input is not a terminal, so the command cannot ask: add --yes to confirm")
	}
	fmt.Fprintf(p.Stderr, "%s\nType %s to continue: ", block(question), line(word))
	answer, err := bufio.NewReader(interruptible(ctx, p.Stdin)).ReadString('\n')
	switch {
	case ctx.Err() != nil:
		return interrupted("; nothing was done")
	case err != nil && !errors.Is(err, io.EOF):
		return err
	case strings.TrimSpace(answer) != word:
		return failure("that is not %s; nothing was done", line(word))
	}
	return nil
}

// progress shows a progress bar on a terminal. The total is -1 if unknown; the library does not support a total of 0.
func (p *Program) progress(total int, what string) *progressbar.ProgressBar {
	return Progress(p.Stderr, total, what)
}

// Progress is Program.progress for other packages.
func Progress(w io.Writer, total int, what string) *progressbar.ProgressBar {
	if total == 0 {
		total = -1
	}
	if _, ok := terminal(w); !ok {
		w = io.Discard
	}
	return progressbar.NewOptions(total, progressbar.OptionSetWriter(w), progressbar.OptionShowCount(),
		progressbar.OptionSetDescription(what), progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionClearOnFinish())
}
