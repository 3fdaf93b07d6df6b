package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/memsidecar/memsidecar/cmd/memsidecar/internal/cli"
	"github.com/memsidecar/memsidecar/internal/secret/seal"
	"github.com/memsidecar/memsidecar/internal/sidecar"
	"github.com/memsidecar/memsidecar/internal/sqlite"
)

type keyCommands struct {
	Create  keyCreate  `cmd:"" help:"Make a random key, in a file that only you may read."`
	Encrypt keyEncrypt `cmd:"" help:"Encrypt the database of a stopped sidecar with the configured key."`
	Decrypt keyDecrypt `cmd:"" help:"Undo the encryption of a stopped sidecar's database."`
	Rotate  keyRotate  `cmd:"" help:"Have another key open the database of a stopped sidecar."`
}

type keyCreate struct {
	File string `arg:"" complete:"file" help:"The file to make."`
}

// Help has examples.
func (keyCreate) Help() string {
	return `Keep a copy of it apart from the database and its backups: without the key nobody can read them, and with it everybody can.

Examples:

    memsidecar key create /etc/memsidecar/key
    memsidecar serve --set encryption.key_file=/etc/memsidecar/key`
}

// Run makes a key.
func (k keyCreate) Run(p *cli.Program) error {
	switch err := seal.CreateKeyFile(k.File); {
	case errors.Is(err, fs.ErrExist):
		return usageError{fmt.Errorf("%s exists already: a key that is lost cannot be made again, so choose another name", k.File)}
	case err != nil:
		return usageError{err}
	}
	p.Note("%s has a new key; keep a copy of it where the database is not, because nothing can be read without it", k.File)
	return nil
}

type keyEncrypt struct {
	JSON bool `group:"output" help:"Answer with JSON."`
}

// Help has examples.
func (keyEncrypt) Help() string {
	return `Stop the sidecar first. The database is written anew, which needs room for it twice, and the file of before is overwritten
when the new one is verified and has its place. Backups made before are not encrypted, and neither are copies that a file
system with snapshots, or an SSD, keeps. A new database is encrypted from the start when there is a key.

Examples:

    memsidecar key encrypt --set encryption.key_file=/etc/memsidecar/key`
}

// Run encrypts.
func (k keyEncrypt) Run(ctx context.Context, m *Main, c *commands) error {
	dir, key, err := m.keyed(c)
	if err != nil {
		return err
	}
	if key.IsZero() {
		return noKey()
	}
	done, err := sqlite.Encrypt(ctx, dir, key)
	if err != nil {
		return maintenance(ctx, err)
	}
	return m.tell(k.JSON, done, "the database of %s is encrypted: %.1f MiB, verified\n", done.Dir, float64(done.Bytes)/mebibyte)
}

type keyDecrypt struct {
	JSON bool `group:"output" help:"Answer with JSON."`
}

// Help has examples.
func (keyDecrypt) Help() string {
	return `Stop the sidecar first, and take the key out of the configuration afterwards. The database is written anew, which needs room
for it twice.

Examples:

    memsidecar key decrypt --set encryption.key_file=/etc/memsidecar/key`
}

// Run decrypts.
func (k keyDecrypt) Run(ctx context.Context, m *Main, c *commands) error {
	dir, key, err := m.keyed(c)
	if err != nil {
		return err
	}
	done, err := sqlite.Reseal(ctx, dir, key, seal.Key{})
	if err != nil {
		return maintenance(ctx, err)
	}
	return m.tell(k.JSON, done, "the database of %s is not encrypted any more: %.1f MiB, verified; take the key out of the configuration\n",
		done.Dir, float64(done.Bytes)/mebibyte)
}

type keyRotate struct {
	File string `arg:"" complete:"file" help:"File with the new key, as key create makes it."`
	Data bool   `help:"Encrypt everything anew as well: whoever had the old key and a copy of the file has nothing of what comes then."`
	JSON bool   `group:"output" help:"Answer with JSON."`
}

// Help has examples.
func (keyRotate) Help() string {
	return `Stop the sidecar first; the configured key is the old one. What is stored is encrypted with a key of its own, which your
key opens: without --data only that is locked anew, at once, however large the database is. With --data it is replaced,
and the database is written anew, which needs room for it twice. Backups keep the key that they were made with.

Examples:

    memsidecar key create new-key
    memsidecar key rotate new-key --set encryption.key_file=key
    memsidecar serve --set encryption.key_file=new-key`
}

// Run rotates.
func (k keyRotate) Run(ctx context.Context, m *Main, c *commands) error {
	dir, before, err := m.keyed(c)
	if err != nil {
		return err
	}
	if before.IsZero() {
		return noKey()
	}
	after, err := seal.ReadKeyFile(k.File)
	if err != nil {
		return usageError{err}
	}
	if after.Equal(before) {
		return usageError{fmt.Errorf("%s has the key that is set already: make another with memsidecar key create", k.File)}
	}
	how := "nothing else was written"
	done := sqlite.Resealed{Dir: dir, Encrypted: true}
	if k.Data {
		how = "everything was encrypted anew"
		done, err = sqlite.Reseal(ctx, dir, before, after)
	} else {
		err = sqlite.Rewrap(ctx, dir, before, after)
	}
	if err != nil {
		return maintenance(ctx, err)
	}
	return m.tell(k.JSON, done, "the key in %s opens the database of %s, and the old one does not; %s. Set encryption.key_file to it\n", k.File, dir, how)
}

// keyed is the data folder and the configured key.
func (m *Main) keyed(c *commands) (dir string, key seal.Key, err error) {
	loaded, err := m.load(c)
	if err != nil {
		return "", key, err
	}
	if key, err = sidecar.EncryptionKey(loaded.Config.Encryption)(); err != nil {
		return "", key, usageError{err}
	}
	return loaded.Config.DataDir, key, nil
}

func noKey() error {
	return usageError{errors.New("there is no key: make one with memsidecar key create, and set encryption.key_file or MEMSIDECAR_ENCRYPTION_KEY")}
}
