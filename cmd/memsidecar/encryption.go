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
	Create  keyCreate  `cmd:"" help:"Create a file with a random key that only you can read."`
	Encrypt keyEncrypt `cmd:"" help:"Encrypt the database of a stopped sidecar with the configured key."`
	Decrypt keyDecrypt `cmd:"" help:"Decrypt the database of a stopped sidecar."`
	Rotate  keyRotate  `cmd:"" help:"Replace the key of a stopped sidecar's database."`
}

type keyCreate struct {
	File string `arg:"" complete:"file" help:"The file to create."`
}

// Help implements kong.HelpProvider.
func (keyCreate) Help() string {
	return `Keep a copy of the key away from the database and its backups. Without the key they cannot be read.

Examples:

    memsidecar key create /etc/memsidecar/key
    memsidecar serve --set encryption.key_file=/etc/memsidecar/key`
}

// Run makes a key.
func (k keyCreate) Run(p *cli.Program) error {
	switch err := seal.CreateKeyFile(k.File); {
	case errors.Is(err, fs.ErrExist):
		return usageError{fmt.Errorf("%s exists already: choose another name, because a lost key cannot be recovered", k.File)}
	case err != nil:
		return usageError{err}
	}
	p.Note("%s has a new key; keep a copy away from the database, because nothing can be read without it", k.File)
	return nil
}

type keyEncrypt struct {
	JSON bool `group:"output" help:"Print JSON."`
}

// Help implements kong.HelpProvider.
func (keyEncrypt) Help() string {
	return `Stop the sidecar first. The database is rewritten, which needs twice its disk space; the old file is overwritten after the new
one was verified. Earlier backups, snapshots of the file system and copies inside an SSD stay unencrypted. With a configured
key, a new database is encrypted from the start.

Examples:

    memsidecar key encrypt --set encryption.key_file=/etc/memsidecar/key`
}

// Run encrypts.
func (k keyEncrypt) Run(ctx context.Context, m *Main, c *commands) error {
	dir, key, err := m.encryptionKey(c)
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
	return m.printResult(k.JSON, done, "the database of %s is encrypted: %.1f MiB, verified\n", done.Dir, float64(done.Bytes)/mebibyte)
}

type keyDecrypt struct {
	JSON bool `group:"output" help:"Print JSON."`
}

// Help implements kong.HelpProvider.
func (keyDecrypt) Help() string {
	return `Stop the sidecar first, and remove the key from the configuration afterwards. The database is rewritten, which needs twice its
disk space.

Examples:

    memsidecar key decrypt --set encryption.key_file=/etc/memsidecar/key`
}

// Run decrypts.
func (k keyDecrypt) Run(ctx context.Context, m *Main, c *commands) error {
	dir, key, err := m.encryptionKey(c)
	if err != nil {
		return err
	}
	done, err := sqlite.Reencrypt(ctx, dir, key, seal.Key{})
	if err != nil {
		return maintenance(ctx, err)
	}
	return m.printResult(k.JSON, done, "the database of %s is no longer encrypted: %.1f MiB, verified; remove the key from the configuration\n",
		done.Dir, float64(done.Bytes)/mebibyte)
}

type keyRotate struct {
	File string `arg:"" complete:"file" help:"File with the new key, from key create."`
	Data bool   `help:"Also replace the internal data key and encrypt everything again. Use it when the old key and a copy of the database may have leaked."`
	JSON bool   `group:"output" help:"Print JSON."`
}

// Help implements kong.HelpProvider.
func (keyRotate) Help() string {
	return `Stop the sidecar first; the configured key is the old one. Your key protects an internal data key that encrypts the database.
Without --data only the data key is encrypted again, which is immediate. With --data the data key is replaced and the database
is rewritten, which needs twice its disk space. Backups keep the key that they were made with.

Examples:

    memsidecar key create new-key
    memsidecar key rotate new-key --set encryption.key_file=key
    memsidecar serve --set encryption.key_file=new-key`
}

// Run rotates.
func (k keyRotate) Run(ctx context.Context, m *Main, c *commands) error {
	dir, before, err := m.encryptionKey(c)
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
		return usageError{fmt.Errorf("%s has the key that is already configured: create another one with memsidecar key create", k.File)}
	}
	how := "nothing else was written"
	done := sqlite.Reencrypted{Dir: dir, Encrypted: true}
	if k.Data {
		how = "everything was encrypted again"
		done, err = sqlite.Reencrypt(ctx, dir, before, after)
	} else {
		err = sqlite.Rewrap(ctx, dir, before, after)
	}
	if err != nil {
		return maintenance(ctx, err)
	}
	return m.printResult(k.JSON, done, "the key in %s opens the database of %s, and the old one does not; %s. Set encryption.key_file to it\n", k.File, dir, how)
}

// encryptionKey returns the data folder and the configured key.
func (m *Main) encryptionKey(c *commands) (dir string, key seal.Key, err error) {
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
	return usageError{errors.New("no key is configured: create one with memsidecar key create, and set encryption.key_file or MEMSIDECAR_ENCRYPTION_KEY")}
}
