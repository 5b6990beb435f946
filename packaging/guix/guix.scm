;; SPDX-License-Identifier: Apache-2.0
;; `guix build -f packaging/guix/guix.scm` builds this checkout. SimGrid is in the channel guix-hpc
;; (https://gitlab.inria.fr/guix-hpc/guix-hpc.git); oneDNN is in none that we know, so our own kernels
;; are all that there is.
(use-modules (gnu packages)
             (guix build-system cmake)
             (guix gexp)
             (guix git-download)
             ((guix licenses) #:prefix license:)
             (guix packages))

(define checkout (dirname (dirname (current-source-directory))))

(define options-on '("SIM" "MPI" "CPU" "BENCH" "ONNX" "HDF5" "SQLITE" "CAIRO" "GUI" "PYTHON"))
(define options-off '("ONEDNN" "CUDA" "TESTS"))

(package
  (name "rehearse")
  (version "0.1.0")
  (source (local-file checkout "rehearse-checkout"
                      #:recursive? #t
                      #:select? (git-predicate checkout)))
  (build-system cmake-build-system)
  (arguments
   (list #:tests? #f
         #:configure-flags
         #~(append (map (lambda (option) (string-append "-DREHEARSE_" option "=ON")) '#$options-on)
                   (map (lambda (option) (string-append "-DREHEARSE_" option "=OFF")) '#$options-off))))
  (native-inputs (map specification->package '("pkg-config" "protobuf" "python")))
  (inputs (map specification->package
               '("fmt" "tomlplusplus" "nlohmann-json" "cli11" "protobuf" "zlib" "hwloc" "pugixml" "re2" "simgrid"
                 "openmpi" "google-highway" "google-benchmark" "onnx" "hdf5" "sqlite" "cairo" "qtbase"
                 "python" "pybind11")))
  (home-page "https://github.com/rehearse/rehearse")
  (synopsis "Predict how deep-learning training scales on machines that one does not hold")
  (description
   "Rehearse predicts how a deep-learning training run scales on a machine, runs the same schedule over MPI on
the machine at hand, and compares the two timelines step by step.")
  (license license:asl2.0))
