package seal

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"

	josecipher "github.com/go-jose/go-jose/v4/cipher"
	"golang.org/x/crypto/chacha20poly1305"
)

const (
	// Overhead is the size of the tag and the nonce of sealed bytes.
	Overhead = chacha20poly1305.Overhead + chacha20poly1305.NonceSizeX
	// EnvelopeSize is the length of an Envelope.
	EnvelopeSize = len(magic) + KeySize + 8
	// magic starts an envelope. SQLite's own files start with "SQLite format 3".
	magic = "msseal"
)

var (
	// ErrWrongKey means that a key does not open an envelope.
	ErrWrongKey = errors.New("the key does not open it")
	// ErrForged means that bytes were changed or moved since they were sealed.
	ErrForged = errors.New("the content was changed or moved after it was written")
)

// Envelope is a data key, wrapped by the operator's key (AES key wrap, RFC 3394), after a magic number.
type Envelope [EnvelopeSize]byte

// IsEnvelope reports whether the bytes start like an envelope.
func IsEnvelope(b []byte) bool { return len(b) >= EnvelopeSize && string(b[:len(magic)]) == magic }

// Pages encrypts and decrypts the pages of a database with one data key. It is safe for concurrent use.
type Pages struct {
	data [KeySize]byte
	aead cipher.AEAD
	head cipher.Block
}

// NewPages returns Pages with a random data key, and the envelope with that key.
func NewPages(key Key) (*Pages, Envelope, error) {
	var data [KeySize]byte
	_, _ = rand.Read(data[:]) // never fails
	p, err := newPages(data)
	if err != nil {
		return nil, Envelope{}, err
	}
	e, err := p.Wrap(key)
	return p, e, err
}

// OpenPages unwraps the data key of an envelope. It returns ErrWrongKey if the key is not the one that wrapped it.
func OpenPages(key Key, e Envelope) (*Pages, error) {
	wrapping, err := wrapping(key)
	if err != nil {
		return nil, err
	}
	data, err := josecipher.KeyUnwrap(wrapping, e[len(magic):])
	if err != nil || !IsEnvelope(e[:]) || len(data) != KeySize {
		return nil, ErrWrongKey
	}
	return newPages([KeySize]byte(data))
}

// Wrap wraps the data key with a key, such as a new one.
func (p *Pages) Wrap(key Key) (e Envelope, err error) {
	wrapping, err := wrapping(key)
	if err != nil {
		return e, err
	}
	wrapped, err := josecipher.KeyWrap(wrapping, p.data[:])
	if err != nil {
		return e, err
	}
	copy(e[copy(e[:], magic):], wrapped)
	return e, nil
}

// wrapping returns the cipher that wraps data keys.
func wrapping(key Key) (cipher.Block, error) {
	if key.IsZero() {
		return nil, ErrWrongKey
	}
	derived, err := derive(key.reveal(), "memsidecar: wrapping data keys")
	if err != nil {
		return nil, err
	}
	return aes.NewCipher(derived)
}

func newPages(data [KeySize]byte) (*Pages, error) {
	pages, err := derive(data[:], "memsidecar: pages")
	if err != nil {
		return nil, err
	}
	heads, err := derive(data[:], "memsidecar: heads of the log")
	if err != nil {
		return nil, err
	}
	aead, err := chacha20poly1305.NewX(pages)
	if err != nil {
		return nil, err
	}
	head, err := aes.NewCipher(heads)
	if err != nil {
		return nil, err
	}
	return &Pages{data, aead, head}, nil
}

// derive derives a key for one purpose (HKDF, RFC 5869).
func derive(from []byte, purpose string) ([]byte, error) {
	return hkdf.Key(sha256.New, from, nil, purpose, KeySize)
}

// Place identifies where sealed bytes belong. They cannot be opened in another place.
type Place struct {
	// File is the kind of file.
	File byte
	// Number is the page number, or another position in the file.
	Number uint64
}

func (p Place) data() []byte {
	return binary.BigEndian.AppendUint64([]byte{p.File}, p.Number)
}

// Seal encrypts a buffer in place (XChaCha20-Poly1305). The tag and the nonce overwrite its last Overhead bytes. Nonces are 24 random
// bytes, long enough never to repeat.
func (p *Pages) Seal(buffer []byte, place Place) {
	body := len(buffer) - Overhead
	nonce := buffer[len(buffer)-chacha20poly1305.NonceSizeX:]
	_, _ = rand.Read(nonce) // never fails
	p.aead.Seal(buffer[:0], nonce, buffer[:body], place.data())
}

// Open reverses Seal, and zeroes the last Overhead bytes. After ErrForged the whole buffer is zeros.
func (p *Pages) Open(buffer []byte, place Place) error {
	tagged := len(buffer) - chacha20poly1305.NonceSizeX
	if _, err := p.aead.Open(buffer[:0], buffer[tagged:], buffer[:tagged], place.data()); err != nil {
		clear(buffer)
		return ErrForged
	}
	clear(buffer[len(buffer)-Overhead:])
	return nil
}

// BlockSize is the block size of Hide and Show.
const BlockSize = aes.BlockSize

// Hide encrypts BlockSize bytes without growth. Equal blocks have equal results.
func (p *Pages) Hide(block []byte) { p.head.Encrypt(block, block) }

// Show reverses Hide.
func (p *Pages) Show(block []byte) { p.head.Decrypt(block, block) }
