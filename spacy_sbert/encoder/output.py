"""The transformer's output for a batch of Docs, split by Doc."""

from spacy_transformers.data_classes import FullTransformerBatch, TransformerData


class RowsOutput(FullTransformerBatch):
    """A FullTransformerBatch whose rows need not cover their Docs.

    The members of a pair may leave out tokens before, between and behind them. The alignment that each Doc gets speaks
    of all its tokens all the same, as components that work on tokens (ner, textcat) expect.
    """

    def split_by_doc(self) -> list[TransformerData]:
        outputs = super().split_by_doc()
        first_token = first_piece = 0
        for spans, output in zip(self.spans, outputs, strict=True):
            if spans:
                n_tokens = len(spans[0].doc)
                align = self.align[first_token : first_token + n_tokens]
                align.data = align.data - first_piece
                output.align = align
                first_token += n_tokens
                first_piece += output.wordpieces.input_ids.size
        return outputs
