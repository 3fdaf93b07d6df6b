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
	// Overhead is how much longer a sealed text is: its tag and its nonce.
	Overhead = chacha20poly1305.Overhead + chacha20poly1305.NonceSizeX
	// EnvelopeSize is the length of an Envelope.
	EnvelopeSize = len(magic) + KeySize + 8
	// magic begins an envelope. SQLite's own files begin with "SQLite format 3".
	magic = "msseal"
)

var (
	// ErrWrongKey means that a key does not open an envelope.
	ErrWrongKey = errors.New("the key does not open it")
	// ErrForged means that what was read is not what was written, or is not in its place.
	ErrForged = errors.New("it is not what was written there")
)

// Envelope is a data key, wrapped by the operator's key (AES key wrap, RFC 3394), behind a few bytes that tell it from others.
type Envelope [EnvelopeSize]byte

// IsEnvelope reports whether the bytes begin like an envelope.
func IsEnvelope(b []byte) bool { return len(b) >= EnvelopeSize && string(b[:len(magic)]) == magic }

// Pages seals and opens with one data key. It may be used by several goroutines at once.
type Pages struct {
	data [KeySize]byte
	aead cipher.AEAD
	head cipher.Block
}

// NewPages makes a random data key, and puts it into an envelope.
func NewPages(key Key) (*Pages, Envelope, error) {
	var data [KeySize]byte
	_, _ = rand.Read(data[:]) // it never fails
	p, err := newPages(data)
	if err != nil {
		return nil, Envelope{}, err
	}
	e, err := p.Wrap(key)
	return p, e, err
}

// OpenPages takes the data key out of an envelope; ErrWrongKey if it is not this key's.
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

// Wrap puts the data key into an envelope for a key, such as the one that takes another's place.
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

// wrapping is what wraps data keys.
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

// derive makes a key for one purpose (HKDF, RFC 5869).
func derive(from []byte, purpose string) ([]byte, error) {
	return hkdf.Key(sha256.New, from, nil, purpose, KeySize)
}

// Place is where sealed bytes belong: they open nowhere else.
type Place struct {
	// File is what kind of file it is.
	File byte
	// Number is that of the page, or another number that says where in the file.
	Number uint64
}

func (p Place) data() []byte {
	return binary.BigEndian.AppendUint64([]byte{p.File}, p.Number)
}

// Seal encrypts a buffer in place (XChaCha20-Poly1305): its last Overhead bytes, which hold nothing, become tag and nonce. The
// nonces are random, 24 bytes long, so that they do not repeat in the life of a key.
func (p *Pages) Seal(buffer []byte, place Place) {
	body := len(buffer) - Overhead
	nonce := buffer[len(buffer)-chacha20poly1305.NonceSizeX:]
	_, _ = rand.Read(nonce) // it never fails
	p.aead.Seal(buffer[:0], nonce, buffer[:body], place.data())
}

// Open undoes Seal, and leaves zeros in the last Overhead bytes. After ErrForged the buffer is all zeros.
func (p *Pages) Open(buffer []byte, place Place) error {
	tagged := len(buffer) - chacha20poly1305.NonceSizeX
	if _, err := p.aead.Open(buffer[:0], buffer[tagged:], buffer[:tagged], place.data()); err != nil {
		clear(buffer)
		return ErrForged
	}
	clear(buffer[len(buffer)-Overhead:])
	return nil
}

// BlockSize is what Hide and Show take.
const BlockSize = aes.BlockSize

// Hide encrypts BlockSize bytes without growing, so that equal ones become equal.
func (p *Pages) Hide(block []byte) { p.head.Encrypt(block, block) }

// Show undoes Hide.
func (p *Pages) Show(block []byte) { p.head.Decrypt(block, block) }
