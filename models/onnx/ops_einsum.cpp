// SPDX-License-Identifier: Apache-2.0
// Einsum: of two operands a stack of products, else a function with so many operations.
#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include <fmt/format.h>

#include "core/limits.hpp"
#include "models/onnx/infer.hpp"
#include "models/onnx/parts.hpp"
#include "models/onnx/windows.hpp"

namespace rehearse::models {
namespace {

bool has_letter(const std::string& letters, char letter) { return letters.find(letter) != std::string::npos; }

// InputError where the equation does not fit what the node reads.
Einsum equation_of(const Import& import, const onnx::NodeProto& node) {
    std::vector<Shape> operands;
    for (const std::string& input : node.input()) operands.push_back(import.graph.dims(input).value_or(Shape{}));
    Einsum read = einsum_of(text(node, "equation", ""), operands);
    if (!read.why_not.empty()) import.graph.fail(node, read.why_not);
    return read;
}

// Whether a letter is summed in one operand alone, before anything is multiplied.
bool summed_alone(const Einsum& equation, char letter) {
    const auto in = [&](const std::string& letters) { return has_letter(letters, letter); };
    return !in(equation.made) && std::ranges::count_if(equation.terms, in) == 1;
}

// Of two operands: letters in all are stacks, letters of one of them its rows or columns, letters that vanish are
// summed.
std::string product_of_two(Import& import, const onnx::NodeProto& node, const Einsum& equation) {
    if (equation.terms.size() != 2) return "it is no product of two operands";
    const std::string &left = equation.terms[0], &right = equation.terms[1], &made = equation.made;
    for (const char letter : left + right) {
        if (summed_alone(equation, letter)) return fmt::format("'{}' is summed in one operand alone", letter);
        const auto size = [&](int input, const std::string& letters) {
            return has_letter(letters, letter) ? import.graph.dims(node.input(input))->at(letters.find(letter))
                                               : equation.sizes.at(letter);
        };
        if (size(0, left) != size(1, right)) return fmt::format("'{}' is spread over one operand", letter);
    }
    std::int64_t batch = 1, m = 1, n = 1, k = 1;
    double operations = 1;
    bool fits = true, summed = false;
    const auto size_of = [&](char letter) {
        const bool first = left.find(letter) != std::string::npos;
        const Value& value = import.graph.value(node.input(first ? 0 : 1));
        const auto at = static_cast<std::size_t>((first ? left : right).find(letter));
        const Value& other = import.graph.value(node.input(1));
        fits = fits && value.dims && at < value.dims->size();
        if (!fits) return std::int64_t{1};
        std::int64_t size = (*value.dims)[at];
        const bool samples = value.batch == static_cast<int>(at) ||
                             (other.batch >= 0 && right.find(letter) == static_cast<std::size_t>(other.batch));
        const auto all = elements(value.dims.value_or(Shape{1}));
        const auto one = elements(import.graph.sample(node.input(first ? 0 : 1)).value_or(Shape{1}));
        if (samples && value.batch == static_cast<int>(at))
            size /= std::max<std::int64_t>(1, all / std::max<std::int64_t>(1, one));
        return size;
    };
    std::string seen;
    for (const char letter : left + right) {
        if (seen.find(letter) != std::string::npos) continue;
        seen += letter;
        const bool a = left.find(letter) != std::string::npos, b = right.find(letter) != std::string::npos,
                   c = made.find(letter) != std::string::npos;
        summed = summed || !c;
        const std::int64_t size = size_of(letter);
        operations *= static_cast<double>(std::max<std::int64_t>(size, 1));
        if (operations > most_work) return "its product is impossibly large";
        (a && b ? (c ? batch : k) : a ? (c ? m : k) : c ? n : k) *= size;
    }
    if (!fits) return "its sizes are not known";
    if (k == 1 && m * n * batch > 1 && !summed) return "nothing is summed";
    if (!in_a_layer(import, node, 1) && batch == 1) {
        const int from = import.source(node, 0, m == 1 ? Shape{k} : Shape{m, k});
        const int layer =
            import.put(node, MatMul{.m = m, .n = n, .k = k, .bias = false}, {from}, import.tensors(node, 1, 1));
        import.starts[layer] = {{ node.input(1) }};
        return "";
    }
    std::vector<int> layers;
    BatchedMatMul op{{batch, m, k}, {batch, k, n}};
    std::vector<std::string> tensors;
    for (const int i : {0, 1}) {
        if (!in_a_layer(import, node, i)) {
            op.trained = i + 1;
            tensors = import.tensors(node, i, i);
        } else {
            layers.push_back(import.source(node, i, i == 0 ? op.a : op.b));
        }
    }
    import.put(node, std::move(op), std::move(layers), std::move(tensors));
    return "";
}

// A sum of products that is no product of two operands: for each combination of its letters the products of what it
// reads, added up to what it makes; before it, sums along what one operand alone has, which are made once of weights.
std::string any_product(Import& import, const onnx::NodeProto& node, const Einsum& equation) {
    double all = 1, sums = 0;
    for (const auto& [letter, size] : equation.sizes)
        if (!summed_alone(equation, letter)) all *= static_cast<double>(size);
    for (std::size_t i = 0; i < equation.terms.size(); ++i) {
        const std::string& term = equation.terms[i];
        if (import.graph.constant(node.input(static_cast<int>(i)))) continue;
        double reads = 1, leaves = 1;
        for (const char letter : std::set<char>(term.begin(), term.end())) {
            const auto size = static_cast<double>(equation.sizes.at(letter));
            reads *= size;
            if (!summed_alone(equation, letter)) leaves *= size;
        }
        sums += reads - leaves;
    }
    const double made = static_cast<double>(elements(import.graph.dims(node.output(0)).value_or(Shape{1})));
    const double operations = sums + all * (node.input_size() - 1) + std::max(0.0, all - made);
    Operands from = import.operands(node);
    if (from.layers.empty()) return "it reads no activation";
    Elementwise op{"compound", import.sample(node, node.output(0)), from.inputs, from.weights, from.constants};
    op.numbers = {operations / std::max(1.0, made)};
    import.put(node, std::move(op), std::move(from.layers), std::move(from.tensors));
    return "";
}

// What one operand is, for who runs it: a layer, and the letter of each of its axes.
struct Term {
    int layer = -1;
    std::string letters;
    Shape dims;
};

// Without the letter of the samples; nothing where it is not a layer's, trained or known. With `bring`, constants are
// layers whether or not they run.
std::optional<Term> term(Import& import, const onnx::NodeProto& node, int input, std::string letters,
                         bool bring = false) {
    const Value& value = import.graph.value(node.input(input));
    if (!value.dims || value.dims->size() != letters.size()) return std::nullopt;
    if (value.kind == Value::Kind::constant) {
        const bool made = bring || in_a_layer(import, node, input);
        const int layer = made ? import.bring(node, node.input(input)) : beside(import, node, input);
        if (layer < 0 || elements(import.builder.shape(layer)) != elements(*value.dims)) return std::nullopt;
        return Term{layer, letters, *value.dims};
    }
    const Shape sample = import.sample(node, node.input(input));
    if (sample.size() < letters.size() && value.batch >= 0 && value.lead == 1)
        letters.erase(static_cast<std::size_t>(value.batch), 1);
    if (sample.size() != letters.size()) return std::nullopt;
    return Term{import.source(node, input), letters, sample};
}

Shape sizes_of(const std::string& letters, const std::map<char, std::int64_t>& sizes) {
    Shape made;
    for (const char letter : letters) made.push_back(sizes.at(letter));
    return made;
}

class Product {
public:
    Product(Import& import, const onnx::NodeProto& node) : import_(import), node_(node) {}

    // The same as what the node makes.
    bool finish(const std::optional<Term>& term) {
        if (term) import_.places[node_.output(0)] = {term->layer, ""};
        return term.has_value();
    }

    // Transpositions, a stack of products, a transposition; nothing where the letters ask for more.
    std::optional<Term> put(const Term& left, const Term& right, std::string made) {
        std::map<char, std::int64_t> sizes;
        for (const Term* each : {&left, &right}) {
            for (std::size_t i = 0; i < each->letters.size(); ++i) {
                std::int64_t& size = sizes[each->letters[i]];
                if (size != 0 && size != each->dims[i]) return std::nullopt;
                size = each->dims[i];
                if (each->letters.find(each->letters[i], i + 1) != std::string::npos) return std::nullopt;
            }
        }
        std::erase_if(made, [&](char letter) { return !sizes.contains(letter); });  // the samples'
        std::string stack, rows, columns, summed;
        double operations = 1;
        for (const auto& [letter, size] : sizes) {
            operations *= static_cast<double>(std::max<std::int64_t>(size, 1));
            if (operations > most_work) return std::nullopt;
            const auto in = [&, one = letter](const std::string& letters) { return letters.find(one) != letters.npos; };
            const bool a = in(left.letters), b = in(right.letters), c = in(made);
            if (!c && !(a && b)) return std::nullopt;  // a sum along one operand's own axis
            (a && b ? c ? stack : summed : a ? rows : columns) += letter;
        }
        if (made.size() != stack.size() + rows.size() + columns.size()) return std::nullopt;
        if (summed.empty()) return by_element(left, right, made, sizes);
        const auto count = [&](const std::string& letters) { return elements(sizes_of(letters, sizes)); };
        const Shape a{count(stack), count(rows), count(summed)}, b{count(stack), count(summed), count(columns)};
        const int l = view(transposed(left, stack + rows + summed, sizes), a);
        const int r = view(transposed(right, stack + summed + columns, sizes), b);
        const int product = layer("product", BatchedMatMul{a, b}, {l, r});
        const std::string order = stack + rows + columns;
        const Term whole{view(product, sizes_of(order, sizes)), order, sizes_of(order, sizes)};
        return Term{transposed(whole, made, sizes), made, sizes_of(made, sizes)};
    }

    // A transposition alone.
    bool put(const Term& only, std::string made) {
        std::map<char, std::int64_t> sizes;
        for (std::size_t i = 0; i < only.letters.size(); ++i) sizes[only.letters[i]] = only.dims[i];
        std::erase_if(made, [&](char letter) { return !sizes.contains(letter); });
        if (sizes.size() != only.letters.size() || made.size() != sizes.size()) return false;
        import_.places[node_.output(0)] = {transposed(only, made, sizes), ""};
        return true;
    }

private:
    int layer(const std::string& what, Op op, std::vector<int> from) {
        return add_part(import_, node_, what, std::move(op), std::move(from));
    }
    int view(int from, const Shape& shape) { return seen_as(import_, node_, from, shape); }
    // Where nothing is summed, each number of one meets one of the other: a product of elements, as PyTorch has it.
    Term by_element(const Term& left, const Term& right, const std::string& made,
                    const std::map<char, std::int64_t>& sizes) {
        const Shape shape = sizes_of(made, sizes);
        std::vector<int> from;
        std::vector<Shape> shapes;
        for (const Term* each : {&left, &right}) {
            std::string order;
            Shape beside;
            for (const char letter : made) {
                const bool own = each->letters.find(letter) != std::string::npos;
                if (own) order += letter;
                beside.push_back(own ? sizes.at(letter) : 1);
            }
            from.push_back(view(transposed(*each, order, sizes), beside));
            shapes.push_back(beside);
        }
        return {layer("product", Elementwise{"mul", shape, shapes}, from), made, shape};
    }
    int transposed(const Term& term, const std::string& letters, const std::map<char, std::int64_t>& sizes) {
        const int from = view(term.layer, term.dims);
        if (letters == term.letters) return from;
        std::vector<std::int64_t> axes;
        for (const char letter : letters) axes.push_back(static_cast<std::int64_t>(term.letters.find(letter)));
        return layer("transpose", Rearrangement{"transpose", {term.dims}, sizes_of(letters, sizes), axes}, {from});
    }

    Import& import_;
    const onnx::NodeProto& node_;
};

// As its letters say, not as its operations count.
bool whole_form(Import& import, const onnx::NodeProto& node, const Einsum& equation) {
    if (node.input_size() == 1) {
        const auto only = term(import, node, 0, equation.terms[0]);
        return only && Product(import, node).put(*only, equation.made);
    }
    if (node.input_size() != 2) return false;
    const bool bring = !import.graph.keeps_values();
    const auto left = term(import, node, 0, equation.terms[0], bring);
    const auto right = term(import, node, 1, equation.terms[1], bring);
    Product product(import, node);
    return left && right && product.finish(product.put(*left, *right, equation.made));
}

// Whether each letter of its operands stands in the result.
bool sums_nothing(const Einsum& equation) {
    return std::ranges::all_of(equation.sizes, [&](const auto& size) { return has_letter(equation.made, size.first); });
}

// Of three operands and more: the first with the second, what they make with the next, as PyTorch multiplies them. A
// letter stays as long as an operand that is left, or the result, has it.
bool one_by_one(Import& import, const onnx::NodeProto& node, const Einsum& equation) {
    if (node.input_size() < 3) return false;
    const std::string& made = equation.made;
    const std::vector<std::string>& letters = equation.terms;
    std::vector<Term> terms;
    for (std::size_t i = 0; i < letters.size(); ++i) {
        const auto next = term(import, node, static_cast<int>(i), letters[i], true);
        if (!next) return false;
        terms.push_back(*next);
    }
    Product product(import, node);
    std::optional<Term> all = terms.front();
    for (std::size_t i = 1; i < terms.size() && all; ++i) {
        std::string rest = made, kept;
        for (std::size_t j = i + 1; j < terms.size(); ++j) rest += terms[j].letters;
        if (i + 1 == terms.size()) kept = made;
        for (const char letter : all->letters + terms[i].letters) {
            const bool here = kept.find(letter) != std::string::npos;
            if (i + 1 < terms.size() && !here && rest.find(letter) != std::string::npos) kept += letter;
        }
        all = product.put(*all, terms[i], kept);
    }
    return product.finish(all);
}

}  // namespace

// Priced by its operations; who runs it gets its transpositions, too.
std::string einsum(Import& import, const onnx::NodeProto& node) {
    for (const std::string& input : node.input())
        if (picks_again(import, input) || import.is_computed(input)) import.bring(node, input);
    const Einsum equation = equation_of(import, node);
    if ((import.graph.keeps_values() || sums_nothing(equation)) && whole_form(import, node, equation)) return "";
    if (one_by_one(import, node, equation)) return "";
    if (std::string why = product_of_two(import, node, equation); !why.empty()) {
        if (why = any_product(import, node, equation); !why.empty()) return why;
    }
    const auto made = import.places.find(node.output(0));
    if (made != import.places.end()) import.not_run(made->second.layer, "the order of its axes is only priced");
    return "";
}

}  // namespace rehearse::models
