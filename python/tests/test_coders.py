import numpy as np
import pytest

import ncmesh
from ncmesh import gf

FIELDS = ("gf2", "gf16", "gf256")
DATA = bytes(range(200))


@pytest.mark.parametrize("field", FIELDS)
def test_what_is_encoded_and_recoded_is_decoded(field):
    encoder = ncmesh.Encoder(8, 32, field, seed=1)
    encoder.load(memoryview(DATA))
    relay = ncmesh.Recoder(8, 32, field, seed=2)
    while relay.rank < 8:
        relay.receive(encoder.encode())
    decoder = ncmesh.Decoder(8, 32, field)
    with pytest.raises(ValueError, match="0 of 8 independent packets"):
        decoder.data()
    news = 0
    while not decoder.is_complete:
        news += decoder.receive(np.frombuffer(relay.recode(), np.uint8))
        assert decoder.rank == news
    assert decoder.data() == DATA + bytes(8 * 32 - len(DATA))
    assert not decoder.receive(bytearray(encoder.encode()))


@pytest.mark.parametrize(("field", "packed"), [("gf2", 1), ("gf16", 2), ("gf256", 4)])
def test_a_packet_is_its_packed_coefficients_and_its_symbol(field, packed):
    encoder = ncmesh.Encoder(4, 3, field)
    encoder.load(b"abcdefghijkl")
    packet = encoder.encode(bytes([0, 0, 1, 0]))
    assert packet[packed:] == b"ghi"
    assert len(packet) == packed + 3


def test_a_payload_is_the_combination_of_the_symbols():
    encoder = ncmesh.Encoder(4, 50)
    encoder.load(DATA)
    coefficients = np.array([7, 0, 255, 1], np.uint8)
    payload = np.frombuffer(encoder.encode(coefficients)[4:], np.uint8)
    symbols = np.frombuffer(DATA, np.uint8).reshape(4, 50)
    assert (payload == gf.matmul(coefficients[None, :], symbols)[0]).all()


def test_one_seed_gives_one_series_of_packets():
    def packets(seed):
        encoder = ncmesh.Encoder(4, 4, seed=seed)
        encoder.load(b"0123456789abcdef")
        return [encoder.encode() for _ in range(4)]

    assert packets(1) == packets(1)
    assert packets(1) != packets(2)
    assert packets(None) != packets(None)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: ncmesh.Encoder(0, 4), ValueError, "1 to 255 symbols, not 0"),
        (lambda: ncmesh.Encoder(4, 70_000), ValueError, "1 to 65535 bytes"),
        (lambda: ncmesh.Encoder(4, 4, "gf7"), ValueError, "there are gf2, gf16, gf256"),
        (lambda: ncmesh.Encoder(4, 4).load(bytes(17)), ValueError, "17 bytes of data in a gener"),
        (lambda: ncmesh.Encoder(4, 4).load("text"), TypeError, "bytes-like object"),
        (lambda: ncmesh.Encoder(4, 4).load(np.zeros(4)), TypeError, "bytes-like object"),
        (lambda: ncmesh.Encoder(4, 4).encode(b"123"), ValueError, "3 bytes where 4"),
        (lambda: ncmesh.Encoder(4, 4, "gf2").encode(b"\x00\x00\x02\x00"), ValueError, "2 at 2"),
        (lambda: ncmesh.Decoder(4, 4).receive(bytes(9)), ValueError, "8 bytes here, not 9"),
        (lambda: ncmesh.Decoder(4, 4, "gf2").receive(b"\xf1abcd"), ValueError, "padding"),
        (lambda: ncmesh.Recoder(4, 4).recode(), ValueError, "nothing to recode"),
    ],
)
def test_misuse_is_told(call, error, message):
    with pytest.raises(error, match=message):
        call()
